"""The program that stays with one job: started by path, without the rest of this package."""

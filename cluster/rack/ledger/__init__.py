"""The power ledger of one currency: escrowed shares, kept so that their sum can never grow.

`charter` is what operators have signed, `book` what one node keeps on disk, `messages` what nodes
say to each other, `closing` how an epoch ends, `ledger` the state machine over them. The proof
sketch stands in `ledger`.
"""

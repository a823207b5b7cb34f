"""What this node does about its power, as pure rules: no clock, no file, no driver."""

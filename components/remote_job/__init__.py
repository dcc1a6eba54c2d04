"""Jobs that `up` itself submits, through HTTP(S), to Ray clusters which the machine of `up` reaches."""

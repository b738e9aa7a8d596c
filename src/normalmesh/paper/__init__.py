"""The tables and figures of the paper, each reproduced by one command."""

"""How fast talkfold is, beside plain sqlite3 and beside what else keeps agent conversations in SQLite.

``make bench`` runs everything and writes ``docs/benchmarks.md``; ``python -m benchmarks append-one`` runs one row.
A number here is never a test: machines differ, so every claim is a ratio of two things measured in turns.
"""

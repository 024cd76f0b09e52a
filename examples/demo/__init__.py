"""The demo: a small bilingual corpus, its index, and the server's page over it.    Run: make demo"""

"""Contracts of benchmark scripts that can ask for a verdict, each with a ``@chat_contract``.

The files hold only delimiters and forms of replies, which any compatible program needs to know.
They hold none of the scripts' own sentences.
"""

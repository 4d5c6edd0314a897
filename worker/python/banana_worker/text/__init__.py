"""Syntax of texts: charsets, header values, multipart parts, long numbers, deep JSON."""

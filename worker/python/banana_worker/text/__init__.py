"""How text arrives: charsets, header values, multipart parts, long numbers, deep JSON."""

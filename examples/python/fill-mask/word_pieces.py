"""The word pieces of BERT: a text in small letters, cut into the longest pieces that the vocabulary has."""

import re
import unicodedata

CLS, SEP, MASK, UNKNOWN = 2, 3, 4, 1
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PARTS = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])|([^\W_]+)|(\S)")
_LONGEST_WORD = 100


class WordPieces:
    def __init__(self, vocabulary):
        """`vocabulary`: the number of each piece; pieces that continue a word begin with `##`."""
        self.numbers = vocabulary
        self.names = {number: piece for piece, number in vocabulary.items()}

    def tokens(self, text):
        tokens = [CLS]
        for special, word, mark in _PARTS.findall(text):
            tokens += [self.numbers[special]] if special else self.of_word(plain(word or mark))
        return [*tokens, SEP]

    def of_word(self, word):
        """Takes the longest matching piece first; a word whose rest matches no piece is unknown as a whole."""
        found, at = [], 0
        while at < len(word) <= _LONGEST_WORD:
            ends = range(len(word), at, -1)
            pieces = (("##" if at else "") + word[at:end] for end in ends)
            piece = next((piece for piece in pieces if piece in self.numbers), None)
            if piece is None:
                return [UNKNOWN]
            found.append(self.numbers[piece])
            at += len(piece) - (2 if at else 0)
        return found if at == len(word) else [UNKNOWN]

    def text(self, tokens):
        """Leaves out the special pieces, which are not text."""
        names = [self.names[token] for token in tokens]
        words = " ".join(name for name in names if name not in _SPECIAL).replace(" ##", "")
        return re.sub(r" ([.?!,])", r"\1", words)


def plain(word):
    """In small letters, without accents."""
    letters = unicodedata.normalize("NFD", word.lower())
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")

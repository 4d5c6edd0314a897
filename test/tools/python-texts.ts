/** The beginnings of docstrings, comments and test names in Python: they name a thing or describe its work. */

/** Words with which a text describes a thing only by its relation to others. */
const BEGINNINGS = ['What', 'How', 'Where', 'Which', 'Those', 'Of', 'Who'];

const WORDS = BEGINNINGS.join('|');
const DOCSTRING = new RegExp(`^[ \\t]*r?"""\\s*(${WORDS})\\b`, 'gm');
/** The first line of a block of comments. */
const COMMENT = new RegExp(`(?<!^[ \\t]*#[^\\n]*\\n)^[ \\t]*# ?(${WORDS})\\b`, 'gm');
const TEST = new RegExp(`^[ \\t]*(?:async )?def test_(${WORDS.toLowerCase()})_`, 'gm');

/** A line for each such text that begins with one of the words. `path` names the file in it. */
export function textProblems(path: string, source: string): string[] {
  return [...source.matchAll(DOCSTRING), ...source.matchAll(COMMENT), ...source.matchAll(TEST)].map(
    (found) => {
      const line = source.slice(0, found.index + found[0].length).split('\n').length;
      return `${path}:${line}: a text begins with "${found[1] ?? ''}": name the thing, or say what it does`;
    },
  );
}

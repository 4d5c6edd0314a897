/** Whether a whole name matches a pattern; `*` matches any text, `?` one character. */
export function matchesPattern(name: string, pattern: string): boolean {
  let [at, star, retry] = [0, -1, 0];
  for (let i = 0; i < name.length;) {
    if (pattern[at] === '*') {
      [star, retry] = [at, i];
      at += 1;
    } else if (pattern[at] === '?' || pattern[at] === name[i]) {
      [at, i] = [at + 1, i + 1];
    } else if (star >= 0) {
      // The last star matches one character more; earlier stars need not be tried again.
      retry += 1;
      [at, i] = [star + 1, retry];
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}

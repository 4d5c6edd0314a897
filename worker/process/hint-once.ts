/** Lines for the log about mistakes of an app that fail no call. Each mistake has one line per worker. */
const given = new Set<string>();

/** Mistakes that have a line; an app may make new ones in every call. */
const MOST = 100;

let write: (line: string) => void = () => {};

/** Names the receiver of the lines. Every mistake may have its line again. */
export function writeHintsTo(receiver: (line: string) => void): void {
  write = receiver;
  given.clear();
}

/** Writes the line, unless this mistake has had one. */
export function hintOnce(mistake: string, line: () => string): void {
  if (given.has(mistake) || given.size >= MOST) return;
  given.add(mistake);
  write(`${line()} (This is logged once per worker.)`);
}

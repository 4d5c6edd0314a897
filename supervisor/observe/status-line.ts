/**
 * A line at the bottom of a terminal that changes while something lasts. Whatever else is printed there goes above
 * it, and a line that somebody has left unfinished is never drawn over.
 */
const LINE_FEED = 0x0a;

/** Moves the cursor to the start of the line and clears the line. */
const CLEAR = '\r\x1b[2K';

export class StatusLine {
  /** The line, without its end; empty: there is none. The next output shows it, if only an empty one. */
  text = '';
  #isShown = false;
  #isMidLine = false;

  /** The bytes for the terminal: `data`, with the line taken away before it and shown behind it. */
  around(data: Buffer): Buffer {
    if (data.length > 0) this.#isMidLine = data.at(-1) !== LINE_FEED;
    const before = this.#isShown ? CLEAR : '';
    const after = this.#isMidLine ? '' : this.text;
    this.#isShown = after !== '';
    return before === '' && after === ''
      ? data
      : Buffer.concat([Buffer.from(before), data, Buffer.from(after)]);
  }
}

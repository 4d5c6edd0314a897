/**
 * A line of progress at the bottom of a terminal. Other output goes above it, and it never overwrites an unfinished line.
 */
const LINE_FEED = 0x0a;

/** Moves the cursor to the start of the line and clears the line. */
const CLEAR = '\r\x1b[2K';

export class StatusLine {
  /** The line, without its end; empty for none. Shown with the next write, which may be empty. */
  text = '';
  #isShown = false;
  #isMidLine = false;

  /** The bytes for the terminal: clears the line, writes `data`, and shows the line again. */
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

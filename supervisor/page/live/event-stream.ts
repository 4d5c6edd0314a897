/** Reads a stream of server-sent events: those of the server's live data, and those that an app answers with. */

/** Takes the text of a stream in pieces of any size. */
export class EventStreamReader {
  /** The beginning of a line whose end has not come yet: it only grows, so that a line of many pieces is searched once. */
  #line = '';
  #name = '';
  #data: string[] = [];
  #isFirst = true;
  /** The last piece ended with CR: an LF at the beginning of the next one belongs to it. */
  #wasCr = false;

  /** The events that `text` completes; the name of one is `message` if the stream names none. */
  push(text: string): { readonly name: string; readonly data: string }[] {
    if (text === '') return [];
    const lines = this.#linesOf(this.#isFirst ? text.replace(/^\uFEFF/, '') : text);
    this.#isFirst = false;
    return lines.map((line) => this.#read(line)).filter((event) => event !== null);
  }

  #linesOf(text: string): string[] {
    const lines: string[] = [];
    let start = this.#wasCr && text.startsWith('\n') ? 1 : 0;
    for (const { 0: end, index } of text.matchAll(/\r\n?|\n/g)) {
      if (index < start) continue;
      lines.push(this.#line + text.slice(start, index));
      this.#line = '';
      start = index + end.length;
    }
    this.#line += text.slice(start);
    this.#wasCr = text.endsWith('\r');
    return lines;
  }

  #read(line: string) {
    if (line === '') return this.#dispatch();
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') this.#name = value;
    if (field === 'data') this.#data.push(value);
    return null;
  }

  #dispatch() {
    const event = { name: this.#name === '' ? 'message' : this.#name, data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#name = '';
    this.#data = [];
    return isEmpty ? null : event;
  }
}

/** Reads a stream of server-sent events: those of the server's live data, and those that an app answers with. */

export interface StreamEvent {
  /** `message` if the stream names none. */
  readonly name: string;
  readonly data: string;
}

/** Takes the text of a stream in pieces of any size. */
export class EventStreamReader {
  #rest = '';
  #name = '';
  #data: string[] = [];
  #isFirst = true;

  /** The events that `text` completes. */
  push(text: string): StreamEvent[] {
    this.#rest += this.#isFirst ? text.replace(/^\uFEFF/, '') : text;
    if (text !== '') this.#isFirst = false;
    const events: StreamEvent[] = [];
    for (let line = this.#takeLine(); line !== null; line = this.#takeLine()) {
      const event = this.#read(line);
      if (event !== null) events.push(event);
    }
    return events;
  }

  /** Null while the line is not complete: a CR at the end may be half of a line break. */
  #takeLine(): string | null {
    const at = this.#rest.search(/[\r\n]/);
    if (at < 0 || (this.#rest[at] === '\r' && at === this.#rest.length - 1)) return null;
    const line = this.#rest.slice(0, at);
    this.#rest = this.#rest.slice(this.#rest.startsWith('\r\n', at) ? at + 2 : at + 1);
    return line;
  }

  #read(line: string): StreamEvent | null {
    if (line === '') return this.#dispatch();
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') this.#name = value;
    if (field === 'data') this.#data.push(value);
    return null;
  }

  #dispatch(): StreamEvent | null {
    const event = { name: this.#name === '' ? 'message' : this.#name, data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#name = '';
    this.#data = [];
    return isEmpty ? null : event;
  }
}

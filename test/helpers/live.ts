/** Reads `GET /_k/live` as the page does: event by event, until it has what a test waits for. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { LiveEvents, LiveSnapshot } from '../../supervisor/status/live-types.js';
import { eventually, type Server } from './server.js';

export type LiveEvent = {
  readonly [Name in keyof LiveEvents]: { readonly name: Name; readonly data: LiveEvents[Name] };
}[keyof LiveEvents];

export class LiveViewer {
  readonly response: Response;
  readonly events: LiveEvent[] = [];
  /** Resolves when the stream has ended; rejects if it was cut. */
  readonly ended: Promise<void>;

  private constructor(response: Response) {
    this.response = response;
    this.ended = this.#read();
    this.ended.catch(() => {}); // a test may leave before
  }

  /** Leaves at the end of the test. */
  static async open(
    t: TestContext,
    { url }: Pick<Server, 'url'>,
    headers: Record<string, string> = {},
    query = '',
  ): Promise<LiveViewer> {
    const leaving = new AbortController();
    t.after(() => leaving.abort());
    const response = await fetch(`${url}/_k/live${query}`, { headers, signal: leaving.signal });
    assert.equal(response.status, 200, response.status === 200 ? '' : await response.text());
    return new LiveViewer(response);
  }

  /** The data of the last event of this name; fails if there was none. */
  last<Name extends keyof LiveEvents>(name: Name): LiveEvents[Name] {
    const data = this.events.findLast((event) => event.name === name)?.data;
    assert.ok(data !== undefined, `an event ${name}`);
    return data as LiveEvents[Name];
  }

  /** Everything of one kind that events have listed so far. */
  all<Name extends 'calls' | 'deaths' | 'descriptions'>(name: Name): LiveSnapshot[Name][number][] {
    return this.events.flatMap((event): readonly unknown[] =>
      event.name === 'samples' || event.name === 'snapshot' ? event.data[name] : [],
    ) as LiveSnapshot[Name][number][];
  }

  /** Resolves with the first snapshot, of those to come too, that satisfies `test`. */
  async snapshot(test: (snapshot: LiveSnapshot) => boolean = () => true): Promise<LiveSnapshot> {
    const snapshots = (): LiveSnapshot[] =>
      this.events.flatMap((event) => (event.name === 'snapshot' ? event.data : []));
    await this.until(() => snapshots().some(test));
    return snapshots().find(test) as LiveSnapshot;
  }

  async until(isTrue: () => boolean): Promise<void> {
    await eventually(
      isTrue,
      60_000,
      () => `last event: ${JSON.stringify(this.events.at(-1)).slice(0, 3000)}`,
    );
  }

  async #read(): Promise<void> {
    let text = '';
    for await (const piece of this.response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      const events = text.split('\n\n');
      text = events.pop() as string;
      this.events.push(...events.map(parseEvent));
    }
  }
}

function parseEvent(event: string): LiveEvent {
  const [, name, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
  return { name, data: JSON.parse(data) as unknown } as LiveEvent;
}

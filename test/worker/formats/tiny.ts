/**
 * A dialect's own format, as small as one can be: the first line of a body has an id and the names of the wanted
 * outputs, the rest is JSON. The answer has a line for each of them, and headers of its own. It waits before it writes,
 * as a format may. `test/fixtures/python/formats/tiny.py` is the same in Python.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../../protocol/wire/messages.js';
import type { DialectFormat, Exchange } from '../../../worker/formats/body-format.js';
import { readJson, writeJson } from '../../../worker/formats/json.js';
import { Reply } from '../../../worker/formats/reply.js';

class TinyExchange implements Exchange {
  readonly #call: Call;
  #id = '-';
  #wanted: readonly string[] = [];

  constructor(call: Call) {
    this.#call = call;
  }

  read(body: Buffer): unknown {
    const end = body.indexOf('\n');
    if (end < 0) throw new ServeError('SERVE_BAD_BODY', 'The body has no line with an id.');
    if (end === 0) throw new ServeError('SERVE_BAD_REQUEST', 'The first line has no id.', { status: 422 });
    [this.#id = '-', ...this.#wanted] = body.toString('utf8', 0, end).split(' ');
    return readJson(body.subarray(end + 1));
  }

  async write({ head, body }: Reply): Promise<Reply> {
    if (body.kind === 'stream')
      throw new ServeError('SERVE_HTTP_ERROR', 'Tiny answers are whole.', { status: 400 });
    const model = new URLSearchParams(this.#call.dialectParams).get('model') ?? '';
    const own = ['X-Kind', body.kind, 'X-Id', this.#id, 'X-Model', model];
    const headers = [head.headers, ...own].filter((line) => line !== '').join('\n');
    if (body.kind === 'bytes') return new Reply({ ...head, headers }, body);
    const values = body.value as Readonly<Record<string, unknown>>;
    const lines = this.#wanted.map((name) => writeJson(values[name], this.#call).body);
    await nextTurn();
    const bytes = Buffer.from(lines.map((line) => `${String(line)}\n`).join(''));
    return new Reply({ ...head, contentType: 'text/x-tiny', headers }, { kind: 'bytes', bytes });
  }
}

export const FORMAT: DialectFormat = { exchange: (call) => new TinyExchange(call) };

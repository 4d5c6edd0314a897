/** Predictions in the form of Cog's HTTP API: the app gets the field `input`, and its answer is the field `output`. */
import { isUtf8 } from 'node:buffer';
import { badField, ServeError } from '../../protocol/errors.js';
import { mediaType } from '../../protocol/text/headers.js';
import type { Call } from '../../protocol/wire/messages.js';
import { jsonText } from '../values/json-encoding.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { errorText, Reply, type ReplyBody } from './reply.js';
import { fieldsOf } from './task-bodies.js';

type Stream = ReplyBody & { kind: 'stream' };

class CogExchange implements Exchange {
  readonly #call: Call;
  #id = '';
  #createdAtMs = 0;
  #startedAtMs = 0;
  #input = '';

  constructor(call: Call) {
    this.#call = call;
  }

  read(body: Buffer): unknown {
    const fields = body.length === 0 ? {} : fieldsOf(body);
    const { input: given, id, webhook } = fields;
    if (this.#call.job === undefined && (webhook ?? null) !== null)
      throw badField('webhook', 'Only a job has a webhook: send Prefer: respond-async.');
    const params = new URLSearchParams(this.#call.dialectParams);
    this.#id = typeof id === 'string' ? id : (params.get('id') ?? '');
    this.#createdAtMs = Number(params.get('created'));
    this.#startedAtMs = Date.now();
    const input = given ?? {};
    this.#input = jsonText(input); // the app may change it
    return input;
  }

  write(answer: Reply): Reply {
    const { body } = answer;
    const head = { ...answer.head, contentType: 'application/json' };
    if (head.status >= 400)
      throw new ServeError('SERVE_HTTP_ERROR', errorText(answer) || undefined, { status: head.status });
    if (body.kind !== 'stream') {
      const json = this.#prediction(outputOf(body, answer.head.contentType));
      return new Reply(head, { kind: 'bytes', bytes: Buffer.from(json) });
    }
    const type = body.byAccept === true ? null : answer.head.contentType;
    return new Reply(head, { kind: 'stream', iterator: this.#collected(body.iterator, type) });
  }

  /**
   * One item, once all have come: until then it fails as a whole. Empty ones between let a cancelled call end. `type`: of a
   * response, whose bytes are one body; null for values of the app, which are a list.
   */
  async *#collected(iterator: Stream['iterator'], type: string | null): AsyncGenerator<string> {
    const items: unknown[] = [];
    let isDone = false;
    try {
      for (;;) {
        const step: IteratorResult<unknown, unknown> = await iterator.next();
        if (step.done === true) break;
        items.push(step.value);
        yield '';
      }
      isDone = true;
    } finally {
      if (!isDone) await iterator.return?.();
    }
    yield this.#prediction(listText(items, type));
  }

  /** The front knows the other facts about a job. */
  #prediction(output: string): string {
    const own = `"input":${this.#input},"output":${output}}`;
    if (this.#call.job !== undefined) return `{${own}`;
    const [startedAtMs, completedAtMs] = [this.#startedAtMs, Date.now()];
    const facts = {
      id: this.#id,
      status: 'succeeded',
      error: null,
      created_at: new Date(this.#createdAtMs),
      started_at: new Date(startedAtMs),
      completed_at: new Date(completedAtMs),
      metrics: { predict_time: (completedAtMs - startedAtMs) / 1000 },
    };
    return `${JSON.stringify(facts).slice(0, -1)},${own}`;
  }
}

/** JSON. */
function outputOf(body: Exclude<ReplyBody, Stream>, contentType: string): string {
  return body.kind === 'bytes' ? bodyText(Buffer.from(body.bytes), contentType) : valueText(body.value);
}

function listText(items: readonly unknown[], type: string | null): string {
  if (type !== null && items.every((item) => item instanceof Uint8Array))
    return bodyText(Buffer.concat(items), type);
  return `[${items.map(valueText).join(',')}]`;
}

/** A data URL, unless the type is JSON or text. */
function bodyText(bytes: Buffer, contentType: string): string {
  const type = mediaType(contentType);
  if (bytes.length === 0) return 'null';
  if (type === 'application/json') return jsonText(JSON.parse(bytes.toString()));
  return type.startsWith('text/') && isUtf8(bytes) ? jsonText(bytes.toString()) : dataUrl(bytes, contentType);
}

function valueText(value: unknown): string {
  return value instanceof Uint8Array ? dataUrl(value, 'application/octet-stream') : jsonText(value);
}

function dataUrl(bytes: Uint8Array, type: string): string {
  return JSON.stringify(`data:${type};base64,${Buffer.from(bytes).toString('base64')}`);
}

export const FORMAT: DialectFormat = {
  itemRefusal:
    'A custom service of Multi Model Server makes no predictions of Cog; call it at /predictions/{model_name}.',
  exchange: (call) => new CogExchange(call),
};

/** Predictions in the form of Cog's HTTP API: the app gets the field `input`, and its answer is the field `output`. */
import { isUtf8 } from 'node:buffer';
import { mediaType } from '../../protocol/text/headers.js';
import type { Call } from '../../protocol/wire/messages.js';
import { jsonText } from '../values/json-encoding.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { assertNoError, Reply, type AnyIterator, type ReplyBody } from './reply.js';
import { fieldsOf } from './task-bodies.js';

type Stream = ReplyBody & { kind: 'stream' };

function exchange(call: Call): Exchange {
  let id = '';
  let createdAtMs = 0;
  let startedAtMs = 0;
  let inputText = '';

  /** The front knows the other facts about a job. */
  function prediction(output: string): string {
    const own = `"input":${inputText},"output":${output}}`;
    if (call.job !== undefined) return `{${own}`;
    const completedAtMs = Date.now();
    const facts = {
      id,
      status: 'succeeded',
      error: null,
      created_at: new Date(createdAtMs),
      started_at: new Date(startedAtMs),
      completed_at: new Date(completedAtMs),
      metrics: { predict_time: (completedAtMs - startedAtMs) / 1000 },
    };
    return `${JSON.stringify(facts).slice(0, -1)},${own}`;
  }

  return {
    read(body) {
      const fields = body.length === 0 ? {} : fieldsOf(body);
      const { input: given, id: named } = fields;
      const params = new URLSearchParams(call.dialectParams);
      id = typeof named === 'string' ? named : (params.get('id') ?? '');
      createdAtMs = Number(params.get('created'));
      startedAtMs = Date.now();
      const input = given ?? {};
      inputText = jsonText(input); // the app may change it
      return input;
    },

    write(answer) {
      const { body } = answer;
      const { contentType } = answer.head;
      const head = { ...answer.head, contentType: 'application/json' };
      assertNoError(answer);
      if (body.kind !== 'stream') {
        const bytes = Buffer.from(prediction(outputOf(body, contentType)));
        return new Reply(head, { kind: 'bytes', bytes });
      }
      const type = body.byAccept === true ? null : contentType;
      return new Reply(head, { kind: 'stream', iterator: collected(body.iterator, type, prediction) });
    },
  };
}

/**
 * One item, once all have come: until then it fails as a whole. Empty ones between let a cancelled call end. `type`: of a
 * response, whose bytes are one body; null for values of the app, which are a list.
 */
async function* collected(
  iterator: AnyIterator,
  type: string | null,
  prediction: (output: string) => string,
): AsyncGenerator<string> {
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
  yield prediction(listText(items, type));
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
  exchange,
};

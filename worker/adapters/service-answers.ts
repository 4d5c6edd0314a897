/** Turns the return value of a custom service for a batch into one answer per item. */
import { badOutput, ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { processorOf, type Context } from '../api/mms/context.js';
import { entriesOf } from './batch-entries.js';
import { isPotassiumResponse, HOP_HEADERS, isResponse } from '../reply/reply-of.js';
import { PLAIN_HEAD, Reply, checkedHeaders, type AnyIterator } from '../formats/reply.js';
import { iteratorOf } from '../reply/stream.js';
import { isThenable } from '../values/not-data.js';

/** Clients of Multi Model Server rely on these texts. */
const NO_LIST = 'Invalid model predict output';
const WRONG_LENGTH = 'number of batch response mismatched';

/** Callbacks for the progress of a batch's answers. */
interface AnswersListener {
  /** A stream has yielded its last chunk. */
  onStreamEnd(): void;
  /** Every result is known, and every stream has ended. */
  onAllEnded(): void;
}

/** Returns an answer for each item. A value that is not an answer becomes the error of its item, or of all items. */
export function answersOf(
  returned: unknown,
  context: Context,
  items: number,
  listener: AnswersListener,
): unknown[] {
  const open = new OpenResults(listener);
  const answers = resultsOf(returned, items).map((result, idx) => answerOf(result, context, idx, open));
  open.close();
  return answers;
}

/** Counts the promised results and the running streams. */
class OpenResults {
  readonly #listener: AnswersListener;
  #count = 1; // the batch itself, while its results are read

  constructor(listener: AnswersListener) {
    this.#listener = listener;
  }

  open(): void {
    this.#count += 1;
  }

  close(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#listener.onAllEnded();
  }

  /** Returns the stream, counted until it ends. */
  stream(iterator: AnyIterator): AsyncIterator<unknown> {
    this.open();
    let hasEnded = false;
    return withEnd(iterator, () => {
      this.#listener.onStreamEnd();
      if (!hasEnded) this.close();
      hasEnded = true;
    });
  }

  async promised(result: PromiseLike<unknown>, answer: (value: unknown) => unknown): Promise<unknown> {
    this.open();
    try {
      return orThrow(answer(await result));
    } finally {
      this.close();
    }
  }
}

function resultsOf(returned: unknown, items: number): readonly unknown[] {
  try {
    return entriesOf(returned, items);
  } catch (cause) {
    const message = Array.isArray(returned) ? WRONG_LENGTH : NO_LIST;
    const detail = `${message}: ${(cause as Error).message}`;
    const error = badOutput(message, { detail, cause });
    return Array.from({ length: items }, () => error);
  }
}

/** Never throws. */
function answerOf(result: unknown, context: Context, idx: number, open: OpenResults): unknown {
  try {
    if (isThenable(result)) return open.promised(result, (value) => answerOf(value, context, idx, open));
    if (result instanceof Error || isResponse(result) || isPotassiumResponse(result)) return result;
    const head = headOf(context, idx);
    const iterator = iteratorOf(result);
    if (iterator === null) return new Reply(head, { kind: 'result', value: result });
    const typeFromItem = head.contentType === '';
    return new Reply(head, { kind: 'stream', iterator: open.stream(iterator), typeFromItem });
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new ServeError('SERVE_OUTPUT_INVALID');
  }
}

function orThrow(answer: unknown): unknown {
  if (answer instanceof Error) throw answer;
  return answer;
}

/**
 * Builds the head of an answer; the content type has a field of its own. @throws SERVE_OUTPUT_INVALID if the headers
 * are too long
 */
function headOf(context: Context, idx: number): ReplyHead {
  const processor = processorOf(context, idx);
  if (processor === undefined) return PLAIN_HEAD;
  const lines: string[] = [];
  for (const [name, value] of Object.entries(processor.getResponseHeaders())) {
    if (!HOP_HEADERS.has(name.toLowerCase())) lines.push(name, value);
  }
  const contentType = processor.getResponseHeader('content-type') ?? '';
  return {
    status: processor.getResponseStatusCode(),
    contentType,
    headers: checkedHeaders(lines.join('\n'), contentType),
    phrase: processor.getResponseStatusPhrase(),
  };
}

/**
 * Calls `onEnd` when the iterator ends. A generator cannot do this: `return()` of one that never started would leave
 * the iterator open.
 */
function withEnd(iterator: AnyIterator, onEnd: () => void): AsyncIterator<unknown> {
  return {
    next: async () => {
      try {
        const step = await iterator.next();
        if (step.done === true) onEnd();
        return step;
      } catch (thrown) {
        onEnd();
        throw thrown;
      }
    },
    return: async () => {
      onEnd();
      await iterator.return?.();
      return { done: true, value: undefined };
    },
  };
}

/** Describes the replies to errors: once for each status of a dialect, in the components of the document. */
import type { ServeError } from '../../../protocol/errors.js';
import type { NamedSchema } from './operation.js';

/** The part of a dialect that decides the form of its errors. */
export interface ErrorStyle {
  /** The status of an error in this dialect. */
  statusOf(error: ServeError): number;
  /** The body of its errors; null if it is not described. */
  readonly errorBody: NamedSchema | null;
}

interface SharedReply {
  readonly errorBody: NamedSchema | null;
  /** The messages of all errors with this status. */
  readonly messages: Set<string>;
}

type Replies = Readonly<Record<string, object>>;

export class ErrorReplies {
  readonly #shared = new Map<string, SharedReply>();
  /** The replies to lists that many operations have in common. */
  readonly #known = new Map<ErrorStyle, Map<readonly ServeError[], Replies>>();

  /** Returns references to the replies, by status. */
  repliesOf(failures: readonly ServeError[], style: ErrorStyle): Replies {
    const known = this.#known.get(style) ?? new Map<readonly ServeError[], Replies>();
    const replies = known.get(failures) ?? this.#share(failures, style);
    this.#known.set(style, known.set(failures, replies));
    return replies;
  }

  #share(failures: readonly ServeError[], style: ErrorStyle): Replies {
    const replies: Record<string, object> = {};
    for (const failure of failures) {
      const status = style.statusOf(failure);
      const name = `${style.errorBody?.name ?? 'Error'}${status}`;
      const shared = this.#shared.get(name) ?? { errorBody: style.errorBody, messages: new Set() };
      this.#shared.set(name, shared);
      shared.messages.add(failure.message);
      replies[status] = { $ref: `#/components/responses/${name}` };
    }
    return replies;
  }

  /** Returns the components to which the references lead. */
  components(): { responses: Record<string, object>; schemas: Record<string, object> } {
    const responses: Record<string, object> = {};
    const schemas: Record<string, object> = {};
    for (const [name, { errorBody, messages }] of this.#shared) {
      responses[name] = { description: [...messages].join(' '), ...contentOf(errorBody) };
      if (errorBody !== null) schemas[errorBody.name] = errorBody.schema;
    }
    return { responses, schemas };
  }
}

function contentOf(body: NamedSchema | null): object {
  if (body === null) return {};
  return { content: { 'application/json': { schema: { $ref: `#/components/schemas/${body.name}` } } } };
}

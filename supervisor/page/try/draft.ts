/** The input that a person is writing for one route, and the request that follows from it. */
import type { CallBody, CallRequest } from './call-request.js';
import { textOfForm, valuesOf, type Field, type FieldValues } from './form.js';

export type Mode = 'json' | 'form' | 'file';

export interface Draft {
  readonly mode: Mode;
  /** The JSON, also of the form. */
  readonly text: string;
  readonly values: FieldValues;
  readonly file: File | null;
  /** Name of the field in a multipart form; empty: the file is the body itself. */
  readonly formField: string;
  readonly accept: Accept;
}

/** For the fields in which the draft is written. */
export interface DraftProps {
  readonly draft: Draft;
  readonly setDraft: (draft: Draft) => void;
}

/** The form of a streamed answer: as the app sends it, as server-sent events, or as lines of JSON. */
export type Accept = '*/*' | 'text/event-stream' | 'application/x-ndjson';

export function firstDraft(text: string): Draft {
  return { mode: 'json', text, values: {}, file: null, formField: '', accept: '*/*' };
}

/** The form takes over what the JSON says, as far as it has fields for it. */
export function withMode(draft: Draft, mode: Mode, fields: readonly Field[] | null): Draft {
  return {
    ...draft,
    mode,
    values: mode === 'form' && fields !== null ? valuesOf(fields, draft.text) : draft.values,
  };
}

/** The JSON follows the form as long as the form has no mistake. */
export function withValue(draft: Draft, fields: readonly Field[], name: string, value: string): Draft {
  const values = { ...draft.values, [name]: value };
  return { ...draft, values, text: textOfForm(fields, values).text ?? draft.text };
}

/** @returns null while the file is missing or the form has a mistake */
export function requestOf(
  draft: Draft,
  fields: readonly Field[] | null,
  { url, needsKey }: { readonly url: string; readonly needsKey: boolean },
): CallRequest | null {
  const body = bodyOf(draft);
  if (body === null) return null;
  if (draft.mode === 'form' && fields !== null && textOfForm(fields, draft.values).text === null) return null;
  const type = typeOf(body);
  const headers = [
    ...(type === '' ? [] : [['Content-Type', type] as const]),
    ...(draft.accept === '*/*' ? [] : [['Accept', draft.accept] as const]),
  ];
  return { url, headers, body, needsKey, isStream: draft.accept !== '*/*' };
}

function bodyOf({ mode, text, file, formField }: Draft): CallBody | null {
  if (mode !== 'file') return text.trim() === '' ? { kind: 'none' } : { kind: 'text', text };
  if (file === null) return null;
  const named = { name: file.name, type: file.type };
  return formField === '' ? { kind: 'file', file: named } : { kind: 'form', field: formField, file: named };
}

function typeOf(body: CallBody): string {
  if (body.kind === 'text') return 'application/json';
  if (body.kind !== 'file') return '';
  return body.file.type === '' ? 'application/octet-stream' : body.file.type;
}

/** The body for fetch. */
export function payloadOf(draft: Draft, { body }: CallRequest): BodyInit | null {
  switch (body.kind) {
    case 'none':
      return null;
    case 'text':
      return body.text;
    case 'file':
      return draft.file;
    case 'form': {
      const form = new FormData();
      if (draft.file !== null) form.append(body.field, draft.file, draft.file.name);
      return form;
    }
  }
}

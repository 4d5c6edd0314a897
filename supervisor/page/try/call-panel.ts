import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import type { DialectPath } from '../../status/live-types.js';
import { choice, segments } from '../parts/controls.js';
import { html, h } from '../parts/html.js';
import { AnswerView } from './answer-view.js';
import {
  firstDraft,
  payloadOf,
  requestOf,
  withMode,
  type Accept,
  type Draft,
  type DraftProps,
  type Mode,
} from './draft.js';
import type { CallRequest } from './call-request.js';
import { FileInput, useDroppedFiles } from './file-input.js';
import { exampleOf, firstInput, isJsonOnly, takesOwnInput } from './first-input.js';
import { fieldsOf, type Field } from './form.js';
import { FormInput } from './form-input.js';
import { JsonInput } from './json-input.js';
import { sendCall, type Answer } from './send-call.js';
import { SnippetsView } from './snippets-view.js';
import { urlOf, type Target } from './targets.js';

export interface PanelProps {
  readonly target: Target;
  readonly path: DialectPath;
  readonly needsKey: boolean;
  readonly store: Store;
}

/** Drafts outlive the panel: a person who looks at another route finds this one as it was. */
const drafts = new Map<string, Draft>();

const MODES: Readonly<Record<Mode, string>> = { json: 'JSON', form: 'Form', file: 'File' };

/** Input, call and answer of one route. */
export function CallPanel({ target, path, needsKey, store }: PanelProps): VNode {
  const { description, route } = target;
  const first = firstInput(description, route, path);
  const draftId = `${target.id} ${path.dialect}`;
  const [draft, setDraft] = useState(() => drafts.get(draftId) ?? firstDraft(first));
  useEffect(() => void drafts.set(draftId, draft), [draft]);
  useNewExample(first, setDraft);
  const call = useCall();
  const hasEnded = store.connection.state === 'ended';

  const fields = takesOwnInput(path) ? fieldsOf(description.signature, exampleOf(description, route)) : null;
  const takesFiles = !isJsonOnly(route, path);
  const take = (file: File): void => setDraft({ ...draft, mode: 'file', file });
  const drop = useDroppedFiles(takesFiles, take);

  const input = { draft, setDraft, fields, takesFiles, first };

  const request = requestOf(draft, fields, { url: urlOf(path, document.baseURI), needsKey });
  const send = (event: Event): void => {
    event.preventDefault();
    if (request !== null && !call.isRunning && !hasEnded) call.send(request, payloadOf(draft, request));
  };
  const sendByKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(event);
  };
  return html`<div class="call">
    <form
      class=${`panel input ${drop.isOver ? 'drop' : ''}`}
      onSubmit=${send}
      onKeyDown=${sendByKey}
      ...${drop.handlers}
    >
      <div class="panel-head">
        <h2>Input</h2>
        ${h(ModeTabs, input)}
      </div>
      ${h(InputOf, input)}
      <div class="row send">
        <button
          type="submit"
          class="primary"
          disabled=${request === null || hasEnded}
          aria-disabled=${call.isRunning}
        >
          ${call.isRunning ? 'Sending …' : 'Send'}
        </button>
        ${call.isRunning && html`<button type="button" onClick=${call.cancel}>Cancel</button>`}
        <code class="muted target">POST ${path.path}</code>
        ${
          route.kind === 'handler' &&
          choice('Answer as', draft.accept, ACCEPTS, (accept) => setDraft({ ...draft, accept }))
        }
      </div>
    </form>
    ${h(AnswerView, { answer: call.answer, store })} ${request !== null && h(SnippetsView, { request })}
  </div>`;
}

interface UsedCall {
  /** Null until the first call. */
  readonly answer: Answer | null;
  readonly isRunning: boolean;
  send(request: CallRequest, payload: BodyInit | null): void;
  cancel(): void;
}

/** One call at a time; it is cancelled when its panel is left. */
function useCall(): UsedCall {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const isRunning = answer?.phase === 'sending' || answer?.phase === 'receiving';
  return {
    answer,
    isRunning,
    send: (request, payload) => {
      abort.current?.abort();
      const own = new AbortController();
      abort.current = own;
      void sendCall(request, payload, own.signal, (next) => {
        if (abort.current === own) setAnswer(next);
      });
    },
    cancel: () => abort.current?.abort(),
  };
}

/** With --watch an app may get another example: an input that the person has left as it was follows it. */
function useNewExample(first: string, setDraft: (change: (draft: Draft) => Draft) => void): void {
  const known = useRef(first);
  useEffect(() => {
    const before = known.current;
    known.current = first;
    if (before !== first) setDraft((draft) => (draft.text === before ? { ...draft, text: first } : draft));
  }, [first]);
}

interface InputProps extends DraftProps {
  readonly fields: readonly Field[] | null;
  readonly takesFiles: boolean;
  /** The first text, to which one can return. */
  readonly first: string;
}

function ModeTabs({ draft, setDraft, fields, takesFiles }: InputProps): VNode | null {
  const modes = (['json', 'form', 'file'] as const).filter(
    (mode) => mode === 'json' || (mode === 'form' ? fields !== null : takesFiles),
  );
  if (modes.length < 2) return null;
  const options = modes.map((mode) => [mode, MODES[mode]] as const);
  return segments('Kind of input', draft.mode, options, (mode) => setDraft(withMode(draft, mode, fields)));
}

function InputOf({ draft, setDraft, fields, first }: InputProps): VNode {
  if (draft.mode === 'file') return h(FileInput, { draft, setDraft });
  if (draft.mode === 'form' && fields !== null) return h(FormInput, { draft, setDraft, fields });
  return h(JsonInput, { draft, setDraft, first });
}

const ACCEPTS: readonly (readonly [Accept, string])[] = [
  ['*/*', 'the app sends it'],
  ['text/event-stream', 'stream of events (SSE)'],
  ['application/x-ndjson', 'stream of lines (NDJSON)'],
];

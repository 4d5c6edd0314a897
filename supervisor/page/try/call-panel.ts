import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import type { DialectPath } from '../../status/live-types.js';
import { choice, segments } from '../parts/controls.js';
import { html, h, type VNode } from '../parts/html.js';
import { answerView } from './answer-view.js';
import { fieldsOf, firstDraft, payloadOf, requestOf, withMode, type Draft } from './draft.js';
import { Input, useDroppedFiles } from './inputs.js';
import { issuesIn } from './schema-fields.js';
import { sendCall, type Answer } from './send-call.js';
import { SnippetsView, type CallRequest } from './snippets.js';
import { exampleOf, firstInput, isJsonOnly, takesOwnInput, urlOf, type Target } from './targets.js';

interface PanelProps {
  readonly target: Target;
  readonly path: DialectPath;
  readonly store: Store;
}

/** Drafts outlive the panel: a person who looks at another route finds this one as it was. */
const drafts = new Map<string, Draft>();

const ACCEPTS = [
  ['*/*', 'the app sends it'],
  ['text/event-stream', 'stream of events (SSE)'],
  ['application/x-ndjson', 'stream of lines (NDJSON)'],
] as const;

const MODES = [
  ['json', 'JSON'],
  ['form', 'Form'],
  ['file', 'File'],
] as const;

/** Input, call and answer of one route. */
export function CallPanel({ target, path, store }: PanelProps): VNode {
  const { description, route } = target;
  const first = firstInput(description, route, path);
  const draftId = `${target.id} ${path.dialect}`;
  const [draft, setDraft] = useState(() => drafts.get(draftId) ?? firstDraft(first));
  useEffect(() => void drafts.set(draftId, draft), [draft]);
  useNewExample(first, setDraft);
  const [answer, sendNow, cancel] = useCall();
  const isRunning = answer?.phase === 'sending' || answer?.phase === 'receiving';
  const [issues, noteSent] = useIssues(answer, draft.text);
  const hasEnded = store.connection.state === 'ended';
  const fields = takesOwnInput(path)
    ? fieldsOf(description.signature, route.schema, exampleOf(description, route))
    : null;
  const takesFiles = !isJsonOnly(route, path);
  const drop = useDroppedFiles(takesFiles, (file) => setDraft({ ...draft, mode: 'file', file }));
  const modes = MODES.filter(([mode]) => mode === 'json' || (mode === 'form' ? fields !== null : takesFiles));

  const request = requestOf(draft, fields, urlOf(path, document.baseURI), store.viewer?.needsKey === true);
  const send = (event: Event): void => {
    event.preventDefault();
    if (request === null || isRunning || hasEnded) return;
    noteSent();
    sendNow(request, payloadOf(draft));
  };
  return html`<div class="call">
    <form
      class=${`panel input ${drop.isOver ? 'drop' : ''}`}
      onSubmit=${send}
      onKeyDown=${(event: KeyboardEvent) => isSendKey(event) && send(event)}
      ...${drop.handlers}
    >
      <div class="panel-head">
        <h2>Input</h2>
        ${
          modes.length > 1 &&
          segments('Kind of input', draft.mode, modes, (mode) => setDraft(withMode(draft, mode, fields)))
        }
      </div>
      ${h(Input, { draft, setDraft, fields, first, issues })}
      <div class="row send">
        <button
          type="submit"
          class="primary"
          disabled=${request === null || hasEnded}
          aria-disabled=${isRunning}
        >
          ${isRunning ? 'Sending …' : 'Send'}
        </button>
        ${isRunning && html`<button type="button" onClick=${cancel}>Cancel</button>`}
        <code class="muted target">POST ${path.path}</code>
        ${
          route.kind === 'handler' &&
          choice('Answer as', draft.accept, ACCEPTS, (accept) => setDraft({ ...draft, accept }))
        }
      </div>
    </form>
    ${answerView(answer, store.history)} ${request !== null && h(SnippetsView, { request })}
  </div>`;
}

function isSendKey({ key, ctrlKey, metaKey }: KeyboardEvent): boolean {
  return key === 'Enter' && (ctrlKey || metaKey);
}

/** The wrong values that the last answer names, as long as the input is the one that was sent. */
function useIssues(
  answer: Answer | null,
  text: string,
): [issues: ReturnType<typeof issuesIn>, noteSent: () => void] {
  const [sent, setSent] = useState('');
  const issues = useMemo(
    () => (answer?.phase === 'done' && answer.body?.kind === 'json' ? issuesIn(answer.body.text) : {}),
    [answer],
  );
  return [text === sent ? issues : {}, () => setSent(text)];
}

/** One call at a time; it is cancelled when its panel is left. The answer is null until the first call. */
function useCall(): [
  answer: Answer | null,
  sendNow: (request: CallRequest, payload: BodyInit | null) => void,
  cancel: () => void,
] {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const abort = useRef<AbortController | null>(null);
  const cancel = (): void => abort.current?.abort();
  useEffect(() => cancel, []);
  const sendNow = (request: CallRequest, payload: BodyInit | null): void => {
    abort.current = new AbortController();
    void sendCall(request, payload, abort.current.signal, setAnswer);
  };
  return [answer, sendNow, cancel];
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

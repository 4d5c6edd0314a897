import { useEffect, useState } from 'preact/hooks';
import { keyHeaders } from '../live/key.js';
import { duration } from '../parts/format.js';
import { html, h, type VNode } from '../parts/html.js';
import { readJson, type JsonNode } from '../parts/json-text.js';
import { stateMark, type Tone } from '../parts/layout.js';
import { JsonTree } from './json-tree.js';

const PAUSE_MS = 1_000;
const TONES: Readonly<Record<string, Tone>> = { queued: 'busy', running: 'busy', succeeded: 'good' };

/** A job's page as `_k/jobs/{id}` has it; `problem` if it cannot be read. */
type Read =
  | { readonly state: string; readonly runMs: number; readonly node: JsonNode; readonly problem: null }
  | { readonly problem: string };

/** The state of a background job until it has ended, then its result. */
export function JobResult({ id }: { readonly id: string }): VNode {
  const [read, setRead] = useState<Read | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    void follow(id, abort.signal, setRead);
    return () => abort.abort();
  }, [id]);
  if (read === null) return html`<p class="muted">Asking for the job …</p>`;
  if (read.problem !== null) return html`<p class="problem">${read.problem}</p>`;
  const { state, runMs, node } = read;
  return html`<div class="job">
    <p role="status">
      ${stateMark(TONES[state] ?? 'bad', state)}
      ${!isPending(state) && html`<span class="muted"> ran ${duration(runMs)}</span>`}
    </p>
    ${h(JsonTree, { node })}
  </div>`;
}

async function follow(id: string, signal: AbortSignal, show: (read: Read) => void): Promise<void> {
  while (!signal.aborted) {
    const read = await readJob(id, signal);
    if (signal.aborted) return;
    show(read);
    if (read.problem !== null || !isPending(read.state)) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function isPending(state: string): boolean {
  return state === 'queued' || state === 'running';
}

async function readJob(id: string, signal: AbortSignal): Promise<Read> {
  const response = await fetch(`_k/jobs/${encodeURIComponent(id)}`, { headers: keyHeaders(), signal }).catch(
    () => null,
  );
  if (response === null) return { problem: 'The server cannot be reached.' };
  if (response.status === 404) return { problem: 'The server does not keep this job any more.' };
  const { node, problem } = readJson(await response.text());
  if (node?.kind !== 'object')
    return { problem: problem ?? `The server has answered with status ${response.status}.` };
  const facts = new Map(node.entries);
  const scalar = (name: string): unknown => {
    const value = facts.get(name);
    return value === undefined || !('raw' in value) ? null : JSON.parse(value.raw);
  };
  return { state: String(scalar('state')), runMs: Number(scalar('runMs')), node, problem: null };
}

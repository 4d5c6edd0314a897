import { useEffect, useState } from 'preact/hooks';
import { keyHeaders } from '../live/key.js';
import { duration } from '../parts/format.js';
import { html, h, type VNode, stateMark, type Tone } from '../parts/html.js';
import { entriesOf, readJson, type JsonNode, type ReadJson } from '../parts/json-text.js';
import { JsonTree } from './json-tree.js';

const PAUSE_MS = 1_000;
const TONES: Readonly<Record<string, Tone>> = { queued: 'busy', running: 'busy', succeeded: 'good' };

/** The state of a background job until it has ended, then its result. */
export function JobResult({ id }: { readonly id: string }): VNode {
  const [read, setRead] = useState<ReadJson | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    void follow(id, abort.signal, setRead);
    return () => abort.abort();
  }, [id]);
  if (read === null) return html`<p class="muted">Asking for the job …</p>`;
  const { node, problem } = read;
  if (node === null) return html`<p class="problem">${problem}</p>`;
  const state = factOf(node, 'state');
  return html`<div class="job">
    <p role="status">
      ${stateMark(TONES[state] ?? 'bad', state)}
      ${!isPending(state) && html`<span class="muted"> ran ${duration(Number(factOf(node, 'runMs')))}</span>`}
    </p>
    ${h(JsonTree, { node })}
  </div>`;
}

async function follow(id: string, signal: AbortSignal, show: (read: ReadJson) => void): Promise<void> {
  while (!signal.aborted) {
    const read = await readJob(id, signal);
    if (signal.aborted) return;
    show(read);
    if (read.node === null || !isPending(factOf(read.node, 'state'))) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function isPending(state: string): boolean {
  return state === 'queued' || state === 'running';
}

/** A text or a number of a job's page; empty without it. */
function factOf(page: JsonNode, name: string): string {
  const value = new Map(entriesOf(page)).get(name);
  return value !== undefined && 'raw' in value ? String(JSON.parse(value.raw)) : '';
}

/** The job's page, `_k/jobs/{id}`, or why it cannot be read. */
async function readJob(id: string, signal: AbortSignal): Promise<ReadJson> {
  const request = { headers: keyHeaders(), signal };
  const response = await fetch(`_k/jobs/${encodeURIComponent(id)}`, request).catch(() => null);
  const text = (await response?.text().catch(() => null)) ?? null; // it may be cut off, or this view be left
  if (response === null || text === null) return { node: null, problem: 'The server cannot be reached.' };
  if (response.status === 404) return { node: null, problem: 'The server does not keep this job any more.' };
  const read = readJson(text);
  if (read.node === null || read.node.kind === 'object') return read;
  return { node: null, problem: `The server has answered with status ${response.status}.` };
}

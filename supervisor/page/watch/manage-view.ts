/** Buttons that manage models, for viewers with a management key: by the management API on the page's own address. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { LiveModel, LiveViewer } from '../../status/live-types.js';
import { managementHeaders, storedManagementKey, storeManagementKey } from '../live/key.js';
import { keyField, quietButton, typed } from '../parts/controls.js';
import { html, h } from '../parts/html.js';

/** The outcome of a request, in words for the person who made it. */
interface Managed {
  readonly isDone: boolean;
  readonly text: string;
}

interface ActionProps {
  readonly text: string;
  /** For people who do not see what the button stands beside. */
  readonly label: string;
  /** Whether it is asked for twice. */
  readonly isGrave?: boolean;
  readonly act: () => Promise<Managed>;
}

/** A button, and what became of the request. */
function Action({ text, label, isGrave = false, act }: ActionProps): VNode {
  const [isAsking, setIsAsking] = useState(false);
  const [state, setState] = useState<Managed | 'running' | null>(null);
  const isRunning = state === 'running';
  const run = async (): Promise<void> => {
    setIsAsking(false);
    setState('running');
    setState(await act());
  };
  const click = (): void => {
    if (isRunning) return;
    if (isGrave && !isAsking) setIsAsking(true);
    else void run();
  };
  return html`<span class="action">
    ${quietButton(isAsking ? `Really ${text.toLowerCase()}?` : text, click, {
      'aria-label': isAsking ? `Really: ${label}` : label,
      'aria-disabled': isRunning,
      onBlur: () => setIsAsking(false),
    })}
    <span role="status" class=${state !== null && state !== 'running' && !state.isDone ? 'problem' : 'muted'}
      >${state === null ? '' : isRunning ? '…' : state.text}</span
    >
  </span>`;
}

export function restartButton(model: LiveModel, index: number): VNode {
  const label = `Restart worker ${index} of ${model.name}`;
  const path = `${pathOf(model)}/workers/${index}/restart?synchronous=true`;
  return h(Action, { text: 'Restart', label, act: () => manage('PUT', path) });
}

/** Scales and unloads one model. */
export function ManageModel({ model }: { readonly model: LiveModel }): VNode {
  const { name, minWorkers, maxWorkers } = model;
  const [min, setMin] = useState<string | null>(null);
  const [max, setMax] = useState<string | null>(null);
  const scalesItself = minWorkers !== maxWorkers;
  const least = Number(min ?? minWorkers);
  const most = scalesItself ? Number(max ?? maxWorkers) : least;
  const act = async (): Promise<Managed> => {
    const range = `min_worker=${least}&max_worker=${Math.max(least, most)}`;
    const managed = await manage('PUT', `${pathOf(model)}?${range}&synchronous=true`);
    setMin(null);
    setMax(null);
    return managed;
  };
  return html`<div class="row manage">
    ${number(`Least workers of ${name}`, scalesItself ? 'Workers, least' : 'Workers', min ?? String(minWorkers), setMin)}
    ${scalesItself && number(`Most workers of ${name}`, 'most', max ?? String(maxWorkers), setMax)}
    ${h(Action, { text: 'Scale', label: `Scale ${name}`, act })}
    ${h(Action, { text: 'Unload', label: `Unload ${name}`, isGrave: true, act: () => manage('POST', storePath(name, 'unload')) })}
  </div>`;
}

function number(label: string, text: string, value: string, set: (value: string) => void): VNode {
  return html`<label class="muted"
    >${text}
    <input type="number" min="0" max="1024" aria-label=${label} value=${value} onInput=${typed(set)} />
  </label>`;
}

interface ManageProps {
  readonly management: LiveViewer['management'];
  readonly mayManage: boolean;
  readonly setMayManage: (may: boolean) => void;
}

/** Loads models of the store; asks for the management key where managing takes another key than calling. */
export function ManageServer({ management, mayManage, setMayManage }: ManageProps): VNode | null {
  useEffect(() => {
    if (management === 'allowed') setMayManage(true);
    else if (management === null) setMayManage(false);
    else if (storedManagementKey() !== '') void canManage().then(setMayManage);
  }, [management]);
  if (management === null) return null;
  return mayManage ? h(LoadModel, {}) : h(ManagementKey, { setMayManage });
}

function ManagementKey({ setMayManage }: Pick<ManageProps, 'setMayManage'>): VNode {
  const [key, setKey] = useState('');
  const [isWrong, setIsWrong] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    storeManagementKey(key.trim());
    const may = await canManage();
    if (!may) storeManagementKey('');
    setIsWrong(!may);
    setMayManage(may);
  };
  return html`<details class="management-key">
    <summary class="muted">Manage models</summary>
    <form class="row" onSubmit=${submit}>
      ${keyField('management-key', 'Management key', key, isWrong, setKey)}
      <button type="submit" class="small">Use this key</button>
      ${isWrong && html`<span class="problem" role="alert">The server does not know this key.</span>`}
    </form>
  </details>`;
}

function LoadModel(): VNode {
  const [names, setNames] = useState<readonly string[]>([]);
  const look = (event: Event): void => {
    if ((event.target as HTMLDetailsElement).open) void storedModels().then(setNames);
  };
  return html`<details class="load-model" onToggle=${look}>
    <summary class="muted">Load a model of the store</summary>
    ${names.length === 0 && html`<p class="muted">The store has no model that is not loaded.</p>`}
    <ul>
      ${names.map(
        (name) =>
          html`<li key=${name} class="row">
            <code>${name}</code>
            ${h(Action, { text: 'Load', label: `Load ${name}`, act: () => manage('POST', storePath(name, 'load')) })}
          </li>`,
      )}
    </ul>
  </details>`;
}

/** The models of the store that are not loaded. */
async function storedModels(): Promise<string[]> {
  const response = await fetch('v2/repository/index', { method: 'POST', headers: managementHeaders() });
  if (!response.ok) return [];
  const entries = (await response.json()) as readonly { readonly name: string; readonly reason: string }[];
  return entries.filter(({ reason }) => reason === 'not loaded').map(({ name }) => name);
}

/** Whether the stored key manages models. */
async function canManage(): Promise<boolean> {
  return (await fetch('models?limit=1', { headers: managementHeaders() })).ok;
}

function pathOf({ name, version }: LiveModel): string {
  return `models/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
}

/** Loads a model of the store, or unloads every version of one. */
function storePath(name: string, verb: 'load' | 'unload'): string {
  return `v2/repository/models/${encodeURIComponent(name)}/${verb}`;
}

async function manage(method: string, path: string): Promise<Managed> {
  try {
    const response = await fetch(path, { method, headers: managementHeaders() });
    return { isDone: response.status === 200, text: response.ok ? 'Done.' : await messageOf(response) };
  } catch {
    return { isDone: false, text: 'The server cannot be reached.' };
  }
}

async function messageOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { message, error } = JSON.parse(text) as { message?: string; error?: string };
    return message ?? error ?? `status ${response.status}`;
  } catch {
    return `status ${response.status}`;
  }
}

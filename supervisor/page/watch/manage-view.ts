/** Buttons that manage models, for viewers with a management key: by the management API on the page's own address. */
import { useEffect, useState } from 'preact/hooks';
import type { LiveModel, LiveViewer } from '../../status/live-types.js';
import { keyHeaders, storedKey, storeKey } from '../live/key.js';
import { keyField, quietButton, typed } from '../parts/controls.js';
import { html, h, type VNode } from '../parts/html.js';

interface ActionProps {
  readonly text: string;
  /** For people who do not see what the button stands beside. */
  readonly label: string;
  /** Whether it is asked for twice. */
  readonly isGrave?: boolean;
  readonly method: string;
  readonly path: string;
  /** Called when the request is over. */
  readonly ended?: () => void;
}

const RUNNING = '…';
const DONE = 'Done.';

/** A button, and what became of its request. */
function Action({ text, label, isGrave = false, method, path, ended }: ActionProps): VNode {
  const [isAsking, setIsAsking] = useState(false);
  const [outcome, setOutcome] = useState('');
  const isRunning = outcome === RUNNING;
  const run = async (): Promise<void> => {
    setIsAsking(false);
    setOutcome(RUNNING);
    setOutcome(await manage(method, path));
    ended?.();
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
    <span role="status" class=${['', RUNNING, DONE].includes(outcome) ? 'muted' : 'problem'}>${outcome}</span>
  </span>`;
}

export function restartButton(model: LiveModel, index: number): VNode {
  const label = `Restart worker ${index} of ${model.name}`;
  const path = `${pathOf(model)}/workers/${index}/restart?synchronous=true`;
  return h(Action, { text: 'Restart', label, method: 'PUT', path });
}

/** Scales and unloads one model. */
export function ManageModel({ model }: { readonly model: LiveModel }): VNode {
  const { name, minWorkers, maxWorkers } = model;
  const [min, setMin] = useState<string | null>(null);
  const [max, setMax] = useState<string | null>(null);
  const scalesItself = minWorkers !== maxWorkers;
  const least = Number(min ?? minWorkers);
  const most = scalesItself ? Math.max(least, Number(max ?? maxWorkers)) : least;
  const path = `${pathOf(model)}?min_worker=${least}&max_worker=${most}&synchronous=true`;
  const ended = (): void => {
    setMin(null);
    setMax(null);
  };
  return html`<div class="row manage">
    ${number(`Least workers of ${name}`, scalesItself ? 'Workers, least' : 'Workers', min ?? String(minWorkers), setMin)}
    ${scalesItself && number(`Most workers of ${name}`, 'most', max ?? String(maxWorkers), setMax)}
    ${h(Action, { text: 'Scale', label: `Scale ${name}`, method: 'PUT', path, ended })}
    ${storeAction('Unload', name, true)}
  </div>`;
}

function number(label: string, text: string, value: string, set: (value: string) => void): VNode {
  return html`<label class="muted"
    >${text}
    <input type="number" min="0" max="1024" aria-label=${label} value=${value} onInput=${typed(set)} />
  </label>`;
}

/** Loads a model of the store, or unloads every version of one. */
function storeAction(text: 'Load' | 'Unload', name: string, isGrave: boolean): VNode {
  const path = `v2/repository/models/${encodeURIComponent(name)}/${text.toLowerCase()}`;
  return h(Action, { text, label: `${text} ${name}`, isGrave, method: 'POST', path });
}

interface ManageProps {
  readonly management: LiveViewer['management'];
  readonly mayManage: boolean;
  readonly setMayManage: (may: boolean) => void;
}

/** Loads models of the store; asks for the management key where managing takes another key than calling. */
export function ManageServer({ management, mayManage, setMayManage }: ManageProps): VNode | null {
  useEffect(() => {
    if (management !== 'needs key') setMayManage(management === 'allowed');
    else if (storedKey('management') !== '') void canManage().then(setMayManage);
  }, [management]);
  if (management === null) return null;
  return mayManage ? h(LoadModel, {}) : h(ManagementKey, { setMayManage });
}

function ManagementKey({ setMayManage }: Pick<ManageProps, 'setMayManage'>): VNode {
  const [key, setKey] = useState('');
  const [isWrong, setIsWrong] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    storeKey('management', key.trim());
    const may = await canManage();
    if (!may) storeKey('management', '');
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
            ${storeAction('Load', name, false)}
          </li>`,
      )}
    </ul>
  </details>`;
}

/** The models of the store that are not loaded. */
async function storedModels(): Promise<string[]> {
  const response = await fetch('v2/repository/index', { method: 'POST', headers: keyHeaders('management') });
  if (!response.ok) return [];
  const entries = (await response.json()) as readonly { readonly name: string; readonly reason: string }[];
  return entries.filter(({ reason }) => reason === 'not loaded').map(({ name }) => name);
}

/** Whether the stored key manages models. */
async function canManage(): Promise<boolean> {
  return (await fetch('models?limit=1', { headers: keyHeaders('management') })).ok;
}

function pathOf({ name, version }: LiveModel): string {
  return `models/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
}

/** Returns `DONE`, or what went wrong, in words for the person who made the request. */
async function manage(method: string, path: string): Promise<string> {
  const headers = keyHeaders('management');
  const response = await fetch(path, { method, headers }).catch(() => null);
  if (response === null) return 'The server cannot be reached.';
  if (response.ok) return DONE;
  try {
    const { message, error } = (await response.json()) as { message?: string; error?: string };
    return message ?? error ?? `status ${response.status}`;
  } catch {
    return `status ${response.status}`;
  }
}

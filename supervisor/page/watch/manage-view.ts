/** Buttons that manage models, for viewers with a management key. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { LiveModel, LiveViewer } from '../../status/live-types.js';
import { storedManagementKey, storeManagementKey } from '../live/key.js';
import { html, h } from '../parts/html.js';
import {
  canManage,
  loadModel,
  restartWorker,
  scaleModel,
  storedModels,
  unloadModel,
  type Managed,
} from './manage.js';

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
  const run = async (): Promise<void> => {
    setIsAsking(false);
    setState('running');
    setState(await act());
  };
  const click = (): void => {
    if (isGrave && !isAsking) setIsAsking(true);
    else void run();
  };
  const isRunning = state === 'running';
  return html`<span class="action">
    <button
      type="button"
      class="small quiet"
      aria-label=${isAsking ? `Really: ${label}` : label}
      aria-disabled=${isRunning}
      onClick=${isRunning ? undefined : click}
      onBlur=${() => setIsAsking(false)}
    >
      ${isAsking ? `Really ${text.toLowerCase()}?` : text}
    </button>
    <span role="status" class=${state !== null && state !== 'running' && !state.isDone ? 'problem' : 'muted'}
      >${state === null ? '' : isRunning ? '…' : state.text}</span
    >
  </span>`;
}

export function RestartWorker({
  model,
  index,
}: {
  readonly model: LiveModel;
  readonly index: number;
}): VNode {
  const label = `Restart worker ${index} of ${model.name}`;
  return h(Action, { text: 'Restart', label, act: () => restartWorker(model, index) });
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
    const managed = await scaleModel(model, least, Math.max(least, most));
    setMin(null);
    setMax(null);
    return managed;
  };
  return html`<div class="row manage">
    ${number(`Least workers of ${name}`, scalesItself ? 'Workers, least' : 'Workers', min ?? String(minWorkers), setMin)}
    ${scalesItself && number(`Most workers of ${name}`, 'most', max ?? String(maxWorkers), setMax)}
    ${h(Action, { text: 'Scale', label: `Scale ${name}`, act })}
    ${h(Action, { text: 'Unload', label: `Unload ${name}`, isGrave: true, act: () => unloadModel(model) })}
  </div>`;
}

function number(label: string, text: string, value: string, set: (value: string) => void): VNode {
  return html`<label class="muted"
    >${text}
    <input
      type="number"
      min="0"
      max="1024"
      aria-label=${label}
      value=${value}
      onInput=${(event: Event) => set((event.target as HTMLInputElement).value)}
    />
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
      <label for="management-key">Management key</label>
      <input
        id="management-key"
        type="password"
        autocomplete="off"
        value=${key}
        aria-invalid=${isWrong}
        onInput=${(event: Event) => setKey((event.target as HTMLInputElement).value)}
      />
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
            <code>${name}</code> ${h(Action, { text: 'Load', label: `Load ${name}`, act: () => loadModel(name) })}
          </li>`,
      )}
    </ul>
  </details>`;
}

/** Requests of the page that manage models, to the management API on its own address. */
import type { LiveModel } from '../../status/live-types.js';
import { managementHeaders } from '../live/key.js';

/** The outcome of a request, in words for the person who made it. */
export interface Managed {
  readonly isDone: boolean;
  readonly text: string;
}

export type ManagedModel = Pick<LiveModel, 'name' | 'version'>;

export function restartWorker(model: ManagedModel, worker: number): Promise<Managed> {
  return manage('PUT', `${pathOf(model)}/workers/${worker}/restart?synchronous=true`);
}

export function scaleModel(model: ManagedModel, min: number, max: number): Promise<Managed> {
  return manage('PUT', `${pathOf(model)}?min_worker=${min}&max_worker=${max}&synchronous=true`);
}

/** Unloads every version of a model. */
export function unloadModel({ name }: ManagedModel): Promise<Managed> {
  return manage('POST', `v2/repository/models/${encodeURIComponent(name)}/unload`);
}

export function loadModel(name: string): Promise<Managed> {
  return manage('POST', `v2/repository/models/${encodeURIComponent(name)}/load`);
}

/** The models of the store that are not loaded. */
export async function storedModels(): Promise<string[]> {
  const response = await fetch('v2/repository/index', { method: 'POST', headers: managementHeaders() });
  if (!response.ok) return [];
  const entries = (await response.json()) as readonly { readonly name: string; readonly reason: string }[];
  return entries.filter(({ reason }) => reason === 'not loaded').map(({ name }) => name);
}

/** Whether the stored key manages models. */
export async function canManage(): Promise<boolean> {
  return (await fetch('models?limit=1', { headers: managementHeaders() })).ok;
}

function pathOf({ name, version }: ManagedModel): string {
  return `models/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
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

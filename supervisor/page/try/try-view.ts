import { useState } from 'preact/hooks';
import type { LiveModel, DialectPath } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import { choice } from '../parts/controls.js';
import { html, h, type VNode } from '../parts/html.js';
import { modelName } from '../watch/models.js';
import { CallPanel } from './call-panel.js';
import { SocketConsole } from './socket-console.js';
import { chosenTarget, targetsOf, type Target } from './targets.js';

/** Calls any route of any model. */
export function TryView({ store }: { readonly store: Store }): VNode {
  const [chosen, choose] = useState('');
  const [pathText, choosePath] = useState('');
  const { history } = store;
  const targets = history === null ? [] : targetsOf(history);
  const target = chosenTarget(targets, chosen);
  const paths = target?.route.paths ?? [];
  const path = paths.find((one) => one.path === pathText) ?? paths[0];
  if (target === null || path === undefined)
    return html`<div class="panel"><p class="muted">${nothingToTry(store)}</p></div>`;
  const content =
    target.route.kind === 'websocket'
      ? h(SocketConsole, { key: target.id, route: target.route.path, path })
      : h(CallPanel, { key: `${target.id} ${path.dialect}`, target, path, store });
  const all = history?.models ?? [];
  return html`<div class="try">${picker(all, targets, target, path, choose, choosePath)} ${content}</div>`;
}

const KINDS = { handler: '', background: ', background job', websocket: ', WebSocket' } as const;

/**
 * Chooses the model, its route, and one of the paths at which it answers. What leaves no choice is not shown. `all`: the models
 * of the server, since a version is named where there are several.
 */
function picker(
  all: readonly LiveModel[],
  targets: readonly Target[],
  { id: chosen, model: { key: chosenKey }, route: { paths } }: Target,
  path: DialectPath,
  choose: (id: string) => void,
  choosePath: (path: string) => void,
): VNode {
  const models = new Map(targets.map(({ model }) => [String(model.key), modelName(model, all)]));
  const routes = targets
    .filter(({ model }) => model.key === chosenKey)
    .map(({ id, route }) => [id, `${route.path}${KINDS[route.kind]}`] as const);
  const pathOptions = paths.map((one) => [one.path, `${one.path}${noteOf(one)}`] as const);
  return html`<div class="panel picker">
    ${models.size > 1 && choice('Model', String(chosenKey), [...models], (key) => choose(`${key} /`))}
    ${routes.length > 1 && choice('Route', chosen, routes, choose)}
    ${choice('Path', path.path, pathOptions, choosePath)}
  </div>`;
}

/** Whose clients use a path; the app's own paths need no word. */
const DIALECTS: Readonly<Record<string, string>> = {
  mms: 'Multi Model Server',
  gateway: "Banana's gateway",
  cog: 'Cog',
  'open-inference': 'Open Inference V2',
};

/** The path's dialect, and whether it is deprecated; may be empty. */
function noteOf({ dialect, isDeprecated }: DialectPath): string {
  const notes = [DIALECTS[dialect] ?? '', isDeprecated ? 'deprecated' : ''].filter((note) => note !== '');
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`;
}

function nothingToTry({ connection, history }: Store): string {
  if (connection.state === 'needs key') return 'Enter the key to see what this server can do.';
  if (history === null) return 'Connecting to the server …';
  return history.models.length === 0
    ? 'This server has no model yet. Register one, and it appears here.'
    : 'The routes are not known until the app is loaded. They appear here by themselves.';
}

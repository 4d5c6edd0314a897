import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { LiveModel, DialectPath } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import { choice } from '../parts/controls.js';
import { html, h } from '../parts/html.js';
import { modelName } from '../watch/names.js';
import { CallPanel } from './call-panel.js';
import { SocketConsole } from './socket-console.js';
import { chosenTarget, targetsOf, type Target } from './targets.js';

/** Calls any route of any model. */
export function TryView({ store }: { readonly store: Store }): VNode {
  const [chosen, choose] = useState('');
  const [pathText, choosePath] = useState('');
  const { history, viewer } = store;
  const targets = history === null ? [] : targetsOf(history);
  const target = chosenTarget(targets, chosen);
  const paths = target?.route.paths ?? [];
  const path = paths.find((one) => one.path === pathText) ?? paths[0];
  if (target === null || path === undefined)
    return html`<div class="panel">${h(NothingToTry, { store })}</div>`;
  const props = {
    key: `${target.id} ${path.dialect}`,
    target,
    path,
    needsKey: viewer?.needsKey === true,
    store,
  };
  return html`<div class="try">
    ${h(TargetPicker, { all: history?.models ?? [], targets, target, path, choose, choosePath })}
    ${target.route.kind === 'websocket' ? h(SocketConsole, { ...props, key: target.id }) : h(CallPanel, props)}
  </div>`;
}

interface PickerProps {
  /** All models of the server: a version is named where there are several. */
  readonly all: readonly LiveModel[];
  readonly targets: readonly Target[];
  readonly target: Target;
  readonly path: DialectPath;
  readonly choose: (id: string) => void;
  readonly choosePath: (path: string) => void;
}

const KINDS = { handler: '', background: ', background job', websocket: ', WebSocket' } as const;

/** Chooses the model, its route, and one of the paths at which it answers. What leaves no choice is not shown. */
function TargetPicker({ all, targets, target, path, choose, choosePath }: PickerProps): VNode {
  const models = [...new Map(targets.map((one) => [one.model.key, one.model])).values()];
  const routes = targets.filter(({ model }) => model.key === target.model.key);
  const { paths } = target.route;
  const pathOptions = paths.map((one) => [one.path, `${one.path}${noteOf(one)}`] as const);
  return html`<div class="panel picker">
    ${
      models.length > 1 &&
      choice(
        'Model',
        String(target.model.key),
        models.map((model) => [String(model.key), modelName(model, all)] as const),
        (key) => choose(`${key} /`),
      )
    }
    ${
      routes.length > 1 &&
      choice(
        'Route',
        target.id,
        routes.map(({ id, route }) => [id, `${route.path}${KINDS[route.kind]}`] as const),
        choose,
      )
    }
    ${choice('Path', path.path, pathOptions, choosePath)}
  </div>`;
}

/** Whose clients use a path; the app's own paths need no word. */
const DIALECTS: Readonly<Record<string, string>> = {
  mms: 'Multi Model Server',
  gateway: "Banana's gateway",
  'open-inference': 'Open Inference V2',
};

/** The path's dialect, and whether it is deprecated; may be empty. */
function noteOf({ dialect, isDeprecated }: DialectPath): string {
  const notes = [DIALECTS[dialect] ?? '', isDeprecated ? 'deprecated' : ''].filter((note) => note !== '');
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`;
}

function NothingToTry({ store: { connection, history } }: { readonly store: Store }): VNode {
  const isEmpty = history?.models.length === 0;
  const text =
    connection.state === 'needs key'
      ? 'Enter the key to see what this server can do.'
      : history === null
        ? 'Connecting to the server …'
        : isEmpty
          ? 'This server has no model yet. Register one, and it appears here.'
          : 'The routes are not known until the app is loaded. They appear here by themselves.';
  return html`<p class="muted">${text}</p>`;
}

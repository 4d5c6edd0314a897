import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import { html, h } from '../parts/html.js';
import { CallPanel } from './call-panel.js';
import { SocketConsole } from './socket-console.js';
import { TargetPicker } from './target-picker.js';
import { chosenTarget, targetsOf } from './targets.js';

/** Calls any route of any model. */
export function TryView({ store }: { readonly store: Store }): VNode {
  const [chosen, choose] = useState('');
  const [pathText, choosePath] = useState('');
  const { history, viewer } = store;
  const targets = history === null ? [] : targetsOf(history);
  const target = chosenTarget(targets, chosen);
  if (target === null) return html`<div class="panel">${h(NothingToTry, { store })}</div>`;
  const path = target.route.paths.find((one) => one.path === pathText) ?? target.route.paths[0];
  if (path === undefined) return html`<div class="panel">${h(NothingToTry, { store })}</div>`;
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

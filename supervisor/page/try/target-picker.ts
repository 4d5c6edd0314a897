import type { VNode } from 'preact';
import type { LiveModel, DialectPath } from '../../status/live-types.js';
import { Choice } from '../parts/choice.js';
import { html, h } from '../parts/html.js';
import { modelName } from '../watch/names.js';
import type { Target } from './targets.js';

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
export function TargetPicker({ all, targets, target, path, choose, choosePath }: PickerProps): VNode {
  const models = [...new Map(targets.map((one) => [one.model.key, one.model])).values()];
  const routes = targets.filter(({ model }) => model.key === target.model.key);
  const { paths } = target.route;
  return html`<div class="panel picker">
    ${
      models.length > 1 &&
      h(Choice, {
        label: 'Model',
        value: String(target.model.key),
        options: models.map((model) => [String(model.key), modelName(model, all)] as const),
        choose: (key: string) => choose(`${key} /`),
      })
    }
    ${
      routes.length > 1 &&
      h(Choice, {
        label: 'Route',
        value: target.id,
        options: routes.map(({ id, route }) => [id, `${route.path}${KINDS[route.kind]}`] as const),
        choose,
      })
    }
    ${h(Choice, {
      label: 'Path',
      value: path.path,
      options: paths.map((one) => [one.path, `${one.path}${noteOf(one)}`] as const),
      choose: choosePath,
    })}
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

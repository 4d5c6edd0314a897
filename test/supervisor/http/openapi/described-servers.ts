/** Servers with models of every kind, as far as their documents need them. */
import type { dialectsOf } from '../../../../supervisor/http/dialects/index.js';
import { loaded, route, type DescribedModel } from './described-models.js';

type DialectSettings = Parameters<typeof dialectsOf>[0];

const tensor = { name: 'x', datatype: 'FP32', shape: [-1, 2] };

export const BANANA = loaded([route('/')], { api: 'banana', example: '{"prompt":"hello"}' });
export const SERVICE = loaded([route('/')], { api: 'mms' });
const POTASSIUM = loaded(
  [
    route('/', { input: 'json' }),
    route('/a-b'),
    route('/a_b'),
    route('/a/b', { kind: 'background', input: 'json' }),
    route('/grüße/{a}?#'),
    route('/chat', { kind: 'websocket', input: 'any' }),
    route('/predictions/other'),
    route('/openapi.json'),
  ],
  { api: 'potassium' },
);
export const TENSORS = loaded([route('/infer')], {
  signature: { inputs: [tensor], outputs: [tensor] },
  example: 'no JSON',
});
export const ONNX = loaded([route('/')], { api: 'none', signature: { inputs: [tensor], outputs: [tensor] } });
const SEVERAL = loaded([route('/one'), route('/two')]);

export const DEFAULT: DescribedModel = { name: 'app', info: POTASSIUM, isDefault: true };
export const OTHERS: readonly DescribedModel[] = [
  { name: 'banana', info: BANANA },
  { name: 'banana', version: '2.0', info: null },
  { name: 'other', info: TENSORS },
  { name: 'several', info: SEVERAL },
];

const FILE = { type: 'text/html', identity: Buffer.alloc(0), coded: {} };
const PAGE = {
  files: { index: FILE, assets: new Map([['x', FILE]]) },
  live: { join: () => {} },
} as unknown as DialectSettings['page'];

export const PLAIN: DialectSettings = {
  isMmsMode: false,
  isManagementShared: false,
  metrics: null,
  areMetricsOnMain: false,
  page: PAGE,
  platform: { health: null, predict: null },
  main: undefined,
};
const SHARED: DialectSettings = {
  ...PLAIN,
  isManagementShared: true,
  metrics: { scrape: () => Promise.reject(new Error('not asked')) },
  areMetricsOnMain: true,
};

export interface Served {
  readonly settings: DialectSettings;
  readonly models: readonly DescribedModel[];
  readonly keys?: boolean;
  readonly mmsExceptionStatus?: string;
  /** With a model store, beside its app. */
  readonly hasStore?: boolean;
  /** With `--openapi-all`. */
  readonly all?: boolean;
}

export const SERVERS: Readonly<Record<string, Served>> = {
  'a Banana app': { settings: PLAIN, models: [{ name: 'm', info: BANANA, isDefault: true }] },
  'a Banana app, with all paths': {
    settings: PLAIN,
    models: [{ name: 'm', info: BANANA, isDefault: true }],
    all: true,
  },
  'a Potassium app': { settings: PLAIN, models: [DEFAULT] },
  'a model without code': { settings: PLAIN, models: [{ name: 'digits', info: ONNX, isDefault: true }] },
  'a custom service': { settings: PLAIN, models: [{ name: 'm', info: SERVICE, isDefault: true }] },
  'an app with a signature': { settings: PLAIN, models: [{ name: 'm', info: TENSORS, isDefault: true }] },
  'an app that is loading': { settings: PLAIN, models: [{ name: 'm', info: null, isDefault: true }] },
  'several models, with keys': { settings: PLAIN, models: [DEFAULT, ...OTHERS], keys: true },
  'several models, with management and metrics': {
    settings: SHARED,
    models: [DEFAULT, ...OTHERS],
    keys: true,
  },
  'models with tasks': {
    settings: PLAIN,
    models: [
      { name: 'embeds', info: loaded([route('/')], { task: 'embedding' }), isDefault: true },
      { name: 'ranks', info: loaded([route('/')], { task: 'rerank' }) },
    ],
  },
  'models of a store': { settings: { ...PLAIN, isMmsMode: true }, models: OTHERS },
  'models of a store, with management': { settings: { ...SHARED, isMmsMode: true }, models: OTHERS },
  'an empty store': { settings: { ...SHARED, isMmsMode: true }, models: [] },
};

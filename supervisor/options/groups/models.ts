/** Options of models, the model store, and Multi Model Server's paths. */
import { type AllowedUrls, NO_URLS, parseAllowedUrls } from '../allowed-urls.js';
import { parseModelName } from '../model-name.js';
import { type WantedModels, parseFolder, parseHandler, parseWantedModels } from '../value-forms.js';
import { parseChoice, parseFilePath, parseWhole } from '../units.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export const MODELS = {
  name: serverOption<string | null>({
    flag: '--name',
    value: '<name>',
    help: 'Name of the model that answers on /, in paths, logs and /status: letters, digits, dots, underscores and hyphens.',
    defaultText: "its file's",
    default: null,
    parse: parseModelName,
  }),
  modelStore: serverOption<string | null>({
    flag: '--model-store',
    value: '<folder>',
    help: 'Folder of models, each a folder or a file in it, which --models and the management API name by their paths there. Without an app, the server is like Multi Model Server: see docs/models.md.',
    defaultText: 'no store',
    default: null,
    parse: parseFolder,
  }),
  models: serverOption<WantedModels | null>({
    flag: '--models',
    value: '<which>',
    help: 'Models of the store to load at the start: all, none, or paths in the store, optionally each after another name: digits,cats=zoo/cats. Separated by commas, or given several times.',
    defaultText: 'none',
    default: null,
    repeats: true,
    parse: parseWantedModels,
  }),
  mmsConfig: serverOption<string | null>({
    flag: '--mms-config',
    value: '<path>',
    help: 'A config.properties of Multi Model Server. MMS_CONFIG_FILE in the environment takes precedence; without either, config.properties of the current folder is read if no app is named and the folder has no app. See docs/config-properties.md.',
    defaultText: 'no file',
    default: null,
    parse: parseFilePath,
  }),
  defaultWorkers: serverOption<number | null>({
    flag: '--default-workers',
    value: '<n>',
    help: 'Workers of each model of the store that is loaded at the start or registered without a number; they share the GPUs, if any. At the start, --workers and --workers-per-gpu take precedence.',
    defaultText: 'at the start one, or one for each GPU; none for models that are registered',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  defaultHandler: serverOption<string | null>({
    flag: '--default-handler',
    value: '<handler>',
    help: 'Handler of models of the store that have no manifest, if the registration names none: file, file:function or file:Class.',
    defaultText: 'found by its name',
    default: null,
    parse: parseHandler,
  }),
  allowedUrls: serverOption<AllowedUrls>({
    flag: '--allowed-urls',
    value: '<urls>',
    help: 'Beginnings of the web addresses from which models may be downloaded, such as https://models.example.com/zoo/; separated by commas. Anyone who can make the server download a model can make it run code: see docs/security.md.',
    defaultText: 'none',
    default: NO_URLS,
    parse: parseAllowedUrls,
  }),
  ping: serverOption<'health' | 'always-200'>({
    flag: '--ping',
    value: '<what>',
    help: 'Answer of /ping: health (503 while models want workers and none has one) or always-200, as in Multi Model Server.',
    defaultText: 'health',
    default: 'health',
    parse: (raw) => parseChoice(raw, ['health', 'always-200']),
  }),
  mmsExceptionStatus: serverOption<'503' | '500'>({
    flag: '--mms-exception-status',
    value: '<status>',
    help: "Status of a failure of the model's code on Multi Model Server's paths: 503, as there, or 500, which load balancers do not mistake for an overloaded server.",
    defaultText: '503',
    default: '503',
    parse: (raw) => parseChoice(raw, ['503', '500']),
  }),
} as const satisfies SomeOptions;

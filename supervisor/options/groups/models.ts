/** Which models are served, and what Multi Model Server's clients see of them. */
import { type AllowedUrls, NO_URLS, parseAllowedUrls } from '../allowed-urls.js';
import { parseKeyFilePath } from '../api-key.js';
import { parseModelName } from '../model-name.js';
import { type WantedModels, parseFolder, parseHandler, parseWantedModels } from '../wanted-models.js';
import { parseChoice, parseWhole } from '../units.js';
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
    help: 'Models of the store to begin with: all, or paths there, each with a name before it if it is to have another: digits,cats=zoo/cats. By commas, or given several times.',
    defaultText: 'none',
    default: null,
    repeats: true,
    parse: parseWantedModels,
  }),
  mmsConfig: serverOption<string | null>({
    flag: '--mms-config',
    value: '<path>',
    help: 'A config.properties of Multi Model Server. MMS_CONFIG_FILE in the environment goes before it; without either, config.properties of the current folder is read if no app is named and none lies there. See docs/config-properties.md.',
    defaultText: 'no file',
    default: null,
    parse: parseKeyFilePath,
  }),
  defaultWorkers: serverOption<number | null>({
    flag: '--default-workers',
    value: '<n>',
    help: 'Workers of each model of the store, both of those that the server begins with and of those that are registered without a number; they share the GPUs, if there are any. --workers and --workers-per-gpu go before it at the start.',
    defaultText: 'at the start one, or one for each GPU; none for models that are registered',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  defaultHandler: serverOption<string | null>({
    flag: '--default-handler',
    value: '<handler>',
    help: 'Handler of folders and archives of the store that have no manifest, where nobody names one: file, file:function or file:Class.',
    defaultText: 'found by its name',
    default: null,
    parse: parseHandler,
  }),
  allowedUrls: serverOption<AllowedUrls>({
    flag: '--allowed-urls',
    value: '<urls>',
    help: 'Beginnings of the web addresses that models may be downloaded from, such as https://models.example.com/zoo/; several, separated by commas. None: whoever may have a model downloaded may have it run here. See docs/security.md.',
    defaultText: 'none',
    default: NO_URLS,
    parse: parseAllowedUrls,
  }),
  ping: serverOption<'health' | 'always-200'>({
    flag: '--ping',
    value: '<what>',
    help: 'What /ping says: health, with 503 while no model that wants workers has one, or always-200, as Multi Model Server did.',
    defaultText: 'health',
    default: 'health',
    parse: (raw) => parseChoice(raw, ['health', 'always-200']),
  }),
  mmsExceptionStatus: serverOption<'503' | '500'>({
    flag: '--mms-exception-status',
    value: '<status>',
    help: "What a failure of the model's code is on Multi Model Server's paths: 503, as it was there, or 500, which no balancer takes for a server that is too busy.",
    defaultText: '503',
    default: '503',
    parse: (raw) => parseChoice(raw, ['503', '500']),
  }),
} as const satisfies SomeOptions;

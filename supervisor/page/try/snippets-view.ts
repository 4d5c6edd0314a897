import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { segments } from '../parts/controls.js';
import { CopyButton } from '../parts/copy-button.js';
import { html, h } from '../parts/html.js';
import { panel } from '../parts/layout.js';
import { forSnippets, INPUT_FILE, type CallRequest } from './call-request.js';
import { curlOf } from './curl.js';
import { fetchOf } from './fetch.js';
import { pythonOf } from './python.js';

const LANGUAGES = { curl: curlOf, fetch: fetchOf, Python: pythonOf } as const;
type Language = keyof typeof LANGUAGES;
const LANGUAGE_NAMES = (Object.keys(LANGUAGES) as Language[]).map((name) => [name, name] as const);

/** The call for other programs. The key in it is a placeholder. */
export function SnippetsView({ request }: { readonly request: CallRequest }): VNode {
  const [language, setLanguage] = useState<Language>('curl');
  const written = forSnippets(request);
  const text = LANGUAGES[language](written);
  const beside = [
    segments('Language', language, LANGUAGE_NAMES, setLanguage),
    h(CopyButton, { text, label: `the call for ${language}` }),
  ];
  const content = html`
    ${written !== request && html`<p class="muted">The input is long: save it as ${INPUT_FILE} first.</p>`}
    <pre tabindex="0" aria-label=${`The call for ${language}`}>${text}</pre>
  `;
  return panel('code', 'The same call as code', 'snippets', beside, content);
}

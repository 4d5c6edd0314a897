import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { CopyButton } from '../parts/copy-button.js';
import { html, h } from '../parts/html.js';
import { forSnippets, INPUT_FILE, type CallRequest } from './call-request.js';
import { curlOf } from './curl.js';
import { fetchOf } from './fetch.js';
import { pythonOf } from './python.js';

const LANGUAGES = { curl: curlOf, fetch: fetchOf, Python: pythonOf } as const;
type Language = keyof typeof LANGUAGES;

/** The call for other programs. The key in it is a placeholder. */
export function SnippetsView({ request }: { readonly request: CallRequest }): VNode {
  const [language, setLanguage] = useState<Language>('curl');
  const written = forSnippets(request);
  const text = LANGUAGES[language](written);
  return html`<section class="panel snippets" aria-labelledby="code-title">
    <div class="panel-head">
      <h2 id="code-title">The same call as code</h2>
      <div class="segments" role="group" aria-label="Language">
        ${(Object.keys(LANGUAGES) as Language[]).map(
          (one) =>
            html`<button
              key=${one}
              type="button"
              aria-pressed=${one === language}
              onClick=${() => setLanguage(one)}
            >
              ${one}
            </button>`,
        )}
      </div>
      ${h(CopyButton, { text, label: `the call for ${language}` })}
    </div>
    ${written !== request && html`<p class="muted">The input is long: save it as ${INPUT_FILE} first.</p>`}
    <pre tabindex="0" aria-label=${`The call for ${language}`}>${text}</pre>
  </section>`;
}

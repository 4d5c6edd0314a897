import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { bytes } from '../parts/format.js';
import { choice, typed } from '../parts/controls.js';
import { html, h } from '../parts/html.js';
import { mediumOf } from '../parts/media.js';
import { Picture } from '../parts/media-view.js';
import type { DraftProps } from './draft.js';

const WAYS = [
  ['body', 'the body itself'],
  ['form', 'a field of a form'],
] as const;

/** The input as a file, with a preview of a picture. */
export function FileInput({ draft, setDraft }: DraftProps): VNode {
  const { file, formField } = draft;
  const pick = (event: Event): void => {
    const picked = (event.target as HTMLInputElement).files?.[0];
    if (picked !== undefined) setDraft({ ...draft, file: picked });
  };
  return html`<div class="file-input">
    <label class="drop-zone">
      <span><b>Choose a file</b>, drop one here, or paste one</span>
      <input type="file" onChange=${pick} />
    </label>
    ${
      file !== null &&
      html`<div class="picked">
        ${mediumOf(file.type) === 'picture' && h(Picture, { blob: file, alt: `The file ${file.name}` })}
        <p>
          <b>${file.name}</b><br />
          <span class="muted"
            >${file.type === '' ? 'application/octet-stream' : file.type}, ${bytes(file.size)}</span
          >
        </p>
      </div>`
    }
    <div class="row sent-as">
      ${choice('Sent as', formField === '' ? 'body' : 'form', WAYS, (way) => {
        setDraft({ ...draft, formField: way === 'form' ? 'image' : '' });
      })}
      ${
        formField !== '' &&
        html`<input
          aria-label="Name of the field"
          value=${formField}
          onInput=${typed((name) => setDraft({ ...draft, formField: name }))}
        />`
      }
    </div>
  </div>`;
}

interface Dropped {
  /** Whether a file is held over the panel. */
  readonly isOver: boolean;
  readonly handlers: Readonly<Record<string, (event: DragEvent) => void>>;
}

/** Takes the first file that is dropped on the panel, or pasted anywhere on the page. */
export function useDroppedFiles(takesFiles: boolean, take: (file: File) => void): Dropped {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!takesFiles) return;
    const paste = ({ clipboardData }: ClipboardEvent): void => {
      const file = clipboardData?.files[0];
      if (file !== undefined) take(file);
    };
    document.addEventListener('paste', paste);
    return () => document.removeEventListener('paste', paste);
  });
  const over = (event: DragEvent): void => {
    if (!takesFiles || event.dataTransfer?.types.includes('Files') !== true) return;
    event.preventDefault();
    setOver(true);
  };
  const drop = (event: DragEvent): void => {
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (!takesFiles || file === undefined) return;
    event.preventDefault();
    take(file);
  };
  return { isOver, handlers: { onDragOver: over, onDragLeave: () => setOver(false), onDrop: drop } };
}

/** The page at `/`: puts it into the document, and connects it to its server. */
import { render } from 'preact';
import { h } from '../parts/html.js';
import { Page } from './page.js';
import { startStore } from './store.js';

const place = document.getElementById('page');
if (place === null) throw new Error('index.html has no element for the page');
startStore();
render(h(Page, {}), place);

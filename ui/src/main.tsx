/** Entry point of the dashboard in the browser. */

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/app.tsx';
import { applyStoredTheme } from './app/theme.ts';
import './styles/base.css';
import './styles/tones.css';

applyStoredTheme();
const root = document.getElementById('root');
if (root === null) throw new Error('the page has no #root element');
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);

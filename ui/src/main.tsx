/** Where the dashboard begins in the browser. */

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

const root = document.getElementById('root');
if (root === null) throw new Error('the page has no place for the dashboard');
createRoot(root).render(
  <StrictMode>
    <main>Durable workflow engine</main>
  </StrictMode>,
);

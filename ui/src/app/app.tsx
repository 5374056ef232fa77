/** The dashboard: what every page below may count on. */

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { Router, useLocation } from 'wouter';
import { isFinal } from '../api/engine.tsx';
import { LiveProvider } from '../api/live.tsx';
import { ToastProvider } from '../components/toasts.tsx';
import { FailureBoundary } from './failure-boundary.tsx';
import { Routes } from './routes.tsx';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

const RETRIES = 2;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < RETRIES && !isFinal(error),
      staleTime: 1000,
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false },
  },
});

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, '');

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <Router base={BASE}>
        <ToastProvider>
          <SignIn>
            <LiveProvider>
              <Shell>
                <Content />
              </Shell>
            </LiveProvider>
          </SignIn>
        </ToastProvider>
      </Router>
    </QueryClientProvider>
  );
}

function Content() {
  const [place] = useLocation();
  return (
    <FailureBoundary place={place}>
      <Routes />
    </FailureBoundary>
  );
}

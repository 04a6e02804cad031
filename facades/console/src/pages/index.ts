/** The pages in the order of the menu. */
import { CATALOG } from './catalog.ts';
import { COMPANY } from './company.ts';
import { CUSTOMERS } from './customers.ts';
import { MACHINES } from './machines.ts';
import { MONEY } from './money.ts';
import type { Page } from './page.ts';
import { PUBLIC } from './public.ts';

export const PAGES: readonly Page[] = [...CUSTOMERS, ...MONEY, ...MACHINES, ...CATALOG, ...PUBLIC, ...COMPANY];

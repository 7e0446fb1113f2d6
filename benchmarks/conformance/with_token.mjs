// Preloaded into a program of Node that knows no tokens: every request that it makes carries one.
import { subscribe } from "node:diagnostics_channel";

const bearer = `Bearer ${process.env.CONFORMANCE_TOKEN}`;
subscribe("undici:request:create", ({ request }) => request.addHeader("authorization", bearer));
subscribe("http.client.request.created", ({ request }) => request.setHeader("authorization", bearer));

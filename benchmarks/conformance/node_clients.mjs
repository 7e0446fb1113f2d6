// One real client in JavaScript at work: `node node_clients.mjs CLIENT BASE_URL TOKEN`; a failure is a stack.
import assert from "node:assert/strict";

const WORD = /Brindle/; // what the scripted model always says
const [name, baseURL, apiKey] = process.argv.slice(2);
const messages = [{ role: "user", content: "Where is the lighthouse?" }];

async function openaiJs() {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert(names.includes("main"));
  const reply = await client.chat.completions.create({ model: "main", messages });
  assert.match(reply.choices[0].message.content, WORD);
  let text = "", usage;
  for await (const chunk of await client.chat.completions.create({ model: "main", messages, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.match(text, WORD);
  assert(usage.total_tokens > 0);
  const response = await client.responses.create({ model: "main", input: "Where is it?" });
  assert.match(response.output_text, WORD);
  await assert.rejects(client.chat.completions.create({ model: "nobody", messages }), OpenAI.NotFoundError);
  await assert.rejects(new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }).models.list(), OpenAI.AuthenticationError);
  return "models, chat, stream, usage, responses, errors";
}

async function aiSdk() {
  const { generateText, streamText } = await import("ai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const model = createOpenAICompatible({ name: "knapper", baseURL, apiKey, includeUsage: true })("main");
  const { text, usage } = await generateText({ model, prompt: "Where is the lighthouse?", maxRetries: 0 });
  assert.match(text, WORD);
  assert(usage.totalTokens > 0);
  const stream = streamText({ model, prompt: "Where is it, once more?", maxRetries: 0 });
  let pieces = "";
  for await (const piece of stream.textStream) pieces += piece;
  assert.match(pieces, WORD);
  assert((await stream.usage).totalTokens > 0);
  return "generateText, streamText, usage";
}

console.log(await { "openai-js": openaiJs, "ai-sdk": aiSdk }[name]());

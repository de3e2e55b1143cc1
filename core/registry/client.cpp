// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions that clients call: they register and unregister a client, and set and
// return the client's private pointer for a device.
#include "../verbs/verbs.hpp"
#include "registry.hpp"

extern "C" {

int ib_register_client(ib_client *client)
{
	KERN_MIGHT_SLEEP();
	auto state = kern::make<ib_client_registry>(kern::Gfp::kernel, *client);
	if (!state.ok())
		return state.error();
	return registry::instance->add_client(state.take()).error();
}

void ib_unregister_client(ib_client *client)
{
	KERN_MIGHT_SLEEP();
	if (KERN_WARN_ON(!client->registry))
		return;
	if (!registry::instance->remove_client(*client->registry))
		verbs::refuse_from_callback(client->name, "unregister this client");
}

void ib_set_client_data(ib_device *device, ib_client *client, void *data)
{
	if (registry::Pair *pair = device->registry->by_client.load(client->registry->number))
		pair->data.store_release(data);
	else
		KERN_WARN_ON("client data outside of add and remove");
}

void *ib_get_client_data(ib_device *device, ib_client *client)
{
	registry::Pair *pair = device->registry->by_client.load(client->registry->number);

	return pair ? pair->data.load_acquire() : nullptr;
}

} // extern "C"

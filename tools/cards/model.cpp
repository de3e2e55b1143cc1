// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/model.hpp"

#include <map>
#include <stdexcept>

namespace weft::cards
{

namespace
{

// Constructed by the first Registration, because the order of static constructors is undefined.
std::map<std::string_view, Model> &models()
{
	static std::map<std::string_view, Model> all;
	return all;
}

} // namespace

const Model *find_model(std::string_view name)
{
	const auto found = models().find(name);
	return found == models().end() ? nullptr : &found->second;
}

std::vector<std::string_view> model_names()
{
	std::vector<std::string_view> names;
	for (const auto &[name, model] : models())
		names.push_back(name);
	return names;
}

Registration::Registration(Model model)
{
	const auto name = model.name;
	if (!models().emplace(name, std::move(model)).second)
		throw std::logic_error("two models of cards are called " + std::string(name));
}

} // namespace weft::cards

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions of libibumad that return names for the values in a MAD.
#include <cstdint>

#include "attach/umad/abi.hpp"

namespace
{

struct Name {
	unsigned value;
	const char *text;
};

template<unsigned count>
const char *find(const Name (&names)[count], unsigned value, const char *otherwise)
{
	for (const Name &name : names)
		if (name.value == value)
			return name.text;
	return otherwise;
}

constexpr Name kClasses[] = {
	{UMAD_CLASS_SUBN_LID_ROUTED, "Subn"},
	{UMAD_CLASS_SUBN_DIRECTED_ROUTE, "Subn"},
	{UMAD_CLASS_SUBN_ADM, "SubnAdm"},
	{UMAD_CLASS_PERF_MGMT, "Perf"},
	{UMAD_CLASS_BM, "BM"},
	{UMAD_CLASS_DEVICE_MGMT, "DevMgt"},
	{UMAD_CLASS_CM, "ComMgt"},
	{UMAD_CLASS_SNMP, "SNMP"},
	{UMAD_CLASS_DEVICE_ADM, "DevAdm"},
	{UMAD_CLASS_BOOT_MGMT, "BootMgt"},
	{UMAD_CLASS_BIS, "BIS"},
	{UMAD_CLASS_CONG_MGMT, "CongestionManagment"},
};
constexpr Name kMethods[] = {
	{UMAD_METHOD_GET, "Get"},
	{UMAD_METHOD_SET, "Set"},
	{UMAD_METHOD_GET_RESP, "GetResp"},
	{UMAD_METHOD_SEND, "Send"},
	{UMAD_METHOD_TRAP, "Trap"},
	{UMAD_METHOD_REPORT, "Report"},
	{UMAD_METHOD_REPORT_RESP, "ReportResp"},
	{UMAD_METHOD_TRAP_REPRESS, "TrapRepress"},
};
constexpr Name kSaMethods[] = {
	{UMAD_SA_METHOD_GET_TABLE, "GetTable"},
	{UMAD_SA_METHOD_GET_TABLE_RESP, "GetTableResp"},
	{UMAD_SA_METHOD_DELETE, "Delete"},
	{UMAD_SA_METHOD_DELETE_RESP, "DeleteResp"},
	{UMAD_SA_METHOD_GET_MULTI, "GetMulti"},
	{UMAD_SA_METHOD_GET_MULTI_RESP, "GetMultiResp"},
	{UMAD_SA_METHOD_GET_TRACE_TABLE, "GetTraceTable"},
};
constexpr Name kStatuses[] = {
	{UMAD_STATUS_SUCCESS, "Success"},
	{UMAD_STATUS_BUSY, "Busy"},
	{UMAD_STATUS_REDIRECT, "Redirect"},
};
constexpr Name kInvalidFields[] = {
	{UMAD_STATUS_BAD_VERSION, "Bad Version"},
	{UMAD_STATUS_METHOD_NOT_SUPPORTED, "Method not supported"},
	{UMAD_STATUS_ATTR_NOT_SUPPORTED, "Method/Attribute combo not supported"},
	{UMAD_STATUS_INVALID_ATTR_VALUE, "Invalid attribute/modifier field"},
};
constexpr Name kSaStatuses[] = {
	{UMAD_SA_STATUS_SUCCESS, "Success"},
	{UMAD_SA_STATUS_NO_RESOURCES, "No Resources"},
	{UMAD_SA_STATUS_REQ_INVALID, "Request Invalid"},
	{UMAD_SA_STATUS_NO_RECORDS, "No Records"},
	{UMAD_SA_STATUS_TOO_MANY_RECORDS, "Too Many Records"},
	{UMAD_SA_STATUS_INVALID_GID, "Invalid GID"},
	{UMAD_SA_STATUS_INSUF_COMPS, "Insufficient Components"},
	{UMAD_SA_STATUS_REQ_DENIED, "Request Denied"},
	{UMAD_SA_STATUS_PRI_SUGGESTED, "Priority Suggested"},
};
constexpr Name kCommonAttributes[] = {
	{UMAD_ATTR_CLASS_PORT_INFO, "Class Port Info"},
	{UMAD_ATTR_NOTICE, "Notice"},
	{UMAD_ATTR_INFORM_INFO, "Inform Info"},
};
constexpr Name kSmAttributes[] = {
	{UMAD_SM_ATTR_NODE_DESC, "NodeDescription"},
	{UMAD_SM_ATTR_NODE_INFO, "NodeInfo"},
	{UMAD_SM_ATTR_SWITCH_INFO, "SwitchInfo"},
	{UMAD_SM_ATTR_GUID_INFO, "GUIDInfo"},
	{UMAD_SM_ATTR_PORT_INFO, "PortInfo"},
	{UMAD_SM_ATTR_PKEY_TABLE, "P_KeyTable"},
	{UMAD_SM_ATTR_SLVL_TABLE, "SLtoVLMappingTable"},
	{UMAD_SM_ATTR_VL_ARB_TABLE, "VLArbitrationTable"},
	{UMAD_SM_ATTR_LINEAR_FT, "LinearForwardingTable"},
	{UMAD_SM_ATTR_RANDOM_FT, "RandomForwardingTable"},
	{UMAD_SM_ATTR_MCAST_FT, "MulticastForwardingTable"},
	{UMAD_SM_ATTR_SM_INFO, "SMInfo"},
	{UMAD_SM_ATTR_VENDOR_DIAG, "VendorDiag"},
	{UMAD_SM_ATTR_LED_INFO, "LedInfo"},
	{UMAD_SM_ATTR_CABLE_INFO, "CableInfo"},
	{UMAD_SM_ATTR_PORT_INFO_EXT, "PortInfoExtended"},
	{UMAD_SM_ATTR_MLNX_EXT_PORT_INFO, "MlnxExtPortInfo"},
};
constexpr Name kSaAttributes[] = {
	{UMAD_SA_ATTR_NODE_REC, "NodeRecord"},
	{UMAD_SA_ATTR_PORT_INFO_REC, "PortInfoRecord"},
	{UMAD_SA_ATTR_SLVL_REC, "SLtoVLMappingTableRecord"},
	{UMAD_SA_ATTR_SWITCH_INFO_REC, "SwitchInfoRecord"},
	{UMAD_SA_ATTR_LINEAR_FT_REC, "LinearForwardingTableRecord"},
	{UMAD_SA_ATTR_RANDOM_FT_REC, "RandomForwardingTableRecord"},
	{UMAD_SA_ATTR_MCAST_FT_REC, "MulticastForwardingTableRecord"},
	{UMAD_SA_ATTR_SM_INFO_REC, "SMInfoRecord"},
	{UMAD_SA_ATTR_INFORM_INFO_REC, "InformInfoRecord"},
	{UMAD_SA_ATTR_LINK_REC, "LinkRecord"},
	{UMAD_SA_ATTR_GUID_INFO_REC, "GuidInfoRecord"},
	{UMAD_SA_ATTR_SERVICE_REC, "ServiceRecord"},
	{UMAD_SA_ATTR_PKEY_TABLE_REC, "P_KeyTableRecord"},
	{UMAD_SA_ATTR_PATH_REC, "PathRecord"},
	{UMAD_SA_ATTR_VL_ARB_REC, "VLArbitrationTableRecord"},
	{UMAD_SA_ATTR_MCMEMBER_REC, "MCMemberRecord"},
	{UMAD_SA_ATTR_TRACE_REC, "TraceRecord"},
	{UMAD_SA_ATTR_MULTI_PATH_REC, "MultiPathRecord"},
	{UMAD_SA_ATTR_SERVICE_ASSOC_REC, "ServiceAssociationRecord"},
};

} // namespace

extern "C" {

const char *umad_class_str(uint8_t mgmt_class)
{
	if (mgmt_class >= UMAD_CLASS_VENDOR_RANGE1_START &&
	    mgmt_class <= UMAD_CLASS_VENDOR_RANGE1_END)
		return "Vendor range 1";
	if (mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	    mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END)
		return "Vendor range 2";
	const char *const name = find(kClasses, mgmt_class, nullptr);
	if (name)
		return name;
	return mgmt_class >= UMAD_CLASS_APPLICATION_START &&
			       mgmt_class <= UMAD_CLASS_APPLICATION_END
		       ? "Application"
		       : "<unknown>";
}

const char *umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	const char *const name = find(kMethods, method, nullptr);
	if (name)
		return name;
	return mgmt_class == UMAD_CLASS_SUBN_ADM ? find(kSaMethods, method, "<unknown>")
						 : "<unknown>";
}

const char *umad_common_mad_status_str(__be16 status)
{
	const unsigned value = be16toh(status);
	if (const unsigned invalid = value & UMAD_STATUS_INVALID_FIELD_MASK)
		return find(kInvalidFields, invalid, "<unknown>");
	return find(kStatuses, value & 0x3, "<unknown>");
}

const char *umad_sa_mad_status_str(__be16 status)
{
	return find(kSaStatuses, (be16toh(status) & UMAD_STATUS_CLASS_MASK) >> 8, "<unknown>");
}

const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id)
{
	const unsigned attribute = be16toh(attr_id);
	const char *const name = find(kCommonAttributes, attribute, nullptr);
	if (name)
		return name;
	switch (mgmt_class) {
	case UMAD_CLASS_SUBN_LID_ROUTED:
	case UMAD_CLASS_SUBN_DIRECTED_ROUTE:
		return find(kSmAttributes, attribute, "<unknown>");
	case UMAD_CLASS_SUBN_ADM:
		return find(kSaAttributes, attribute, "<unknown>");
	default:
		return "<unknown>";
	}
}

} // extern "C"
